# One resource's list and the Table of it, with what differs from run to run replaced.
def steady:
  walk(if type == "object" then
    del(.managedFields)
    | if has("uid") then .uid = "<uid>" else . end
    | if (.resourceVersion // "") != "" then .resourceVersion = "<rv>" else . end
  elif type == "string" and test("^20[2-9][0-9]-[0-9-]+T[0-9:]+Z$") then "2000-01-01T00:00:00Z"
  else . end);

def ageless:
  [.columnDefinitions | to_entries[] | select(.value.name | IN("Age", "Last Seen", "First Seen")) | .key] as $ages
  | .columnDefinitions[].description = "<description>"
  | .rows[].cells |= reduce $ages[] as $i (.; .[$i] = "<age>")
  | .rows[].cells |= map(if type == "string" then sub("\\([^()]+ ago\\)"; "(<age> ago)") else . end);

{path: $path, objects: ($objects[0] | steady), table: ($table[0] | steady | ageless)}
