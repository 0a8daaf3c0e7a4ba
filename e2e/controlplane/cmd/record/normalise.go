package main

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

var (
	uids = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	// Times of this century's later years are the server's; requests use the year 2000.
	times = regexp.MustCompile(`20[2-9]\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	// Some messages quote whole objects, or places in the server's source.
	quotedVersions = regexp.MustCompile(`(resourceVersion\\*":\\*")\d+`)
	quotedObjects  = regexp.MustCompile(`Invalid value: "\{\\"apiVersion.*\}": `)
	toldVersions   = regexp.MustCompile(`(current: |in record \(|too old resource version: \d+ \()\d+`)
	// Differences of objects in messages are printed in a form that is not meant to be stable.
	differences = regexp.MustCompile(`(?s)\n@@.*`)
	addresses   = regexp.MustCompile(`127\.0\.0\.1:\d+`)
	schemes     = regexp.MustCompile(`in scheme "[^"]*"`)
)

// hideGenerated replaces what the server put after a request's generateName, wherever it shows.
func hideGenerated(prefix string, value any) any {
	generated := regexp.MustCompile(regexp.QuoteMeta(prefix) + `[bcdfghjklmnpqrstvwxz2456789]{5}\b`)
	return eachText(value, func(text string) string { return generated.ReplaceAllString(text, prefix+"<suffix>") })
}

func eachText(value any, change func(string) string) any {
	switch value := value.(type) {
	case string:
		return change(value)
	case []any:
		for i := range value {
			value[i] = eachText(value[i], change)
		}
	case map[string]any:
		for key := range value {
			value[key] = eachText(value[key], change)
		}
	}
	return value
}

// normalise replaces what differs from run to run: uids, resource versions, times, ages,
// continue tokens, generated names and addresses. It is idempotent.
func normalise(value any) any {
	switch value := value.(type) {
	case string:
		return normaliseText(value)
	case []any:
		for i := range value {
			value[i] = normalise(value[i])
		}
	case map[string]any:
		normaliseObject(value)
	}
	return value
}

func normaliseText(text string) string {
	text = uids.ReplaceAllString(text, "<uid>")
	text = times.ReplaceAllString(text, "<time>")
	text = quotedVersions.ReplaceAllString(text, "${1}<rv>")
	text = quotedObjects.ReplaceAllString(text, `Invalid value: "<object>": `)
	text = toldVersions.ReplaceAllString(text, "${1}<rv>")
	text = differences.ReplaceAllString(text, "\n<difference>")
	text = addresses.ReplaceAllString(text, "<address>")
	return schemes.ReplaceAllString(text, `in scheme "<scheme>"`)
}

func normaliseObject(object map[string]any) {
	hideAges(object)
	if prefix, ok := object["generateName"].(string); ok && prefix != "" {
		object["name"] = hideGenerated(prefix, object["name"])
	}
	for key, value := range object {
		text, isText := value.(string)
		switch {
		case key == "resourceVersion" && isText && text != "" && text != "0":
			object[key] = "<rv>"
		case key == "continue" && isText && text != "":
			object[key] = "<continue>"
		case key == "clusterIP" && isText && strings.HasPrefix(text, "10."):
			object[key] = "<ip>"
		case key == "clusterIPs":
			object[key] = []any{"<ip>"}
		case key == "managedFields":
			object[key] = sortManagers(normalise(value))
		default:
			object[key] = normalise(value)
		}
	}
}

// hideAges blanks the Age cells of a Table, and what its columns are described by.
func hideAges(object map[string]any) {
	columns, _ := object["columnDefinitions"].([]any)
	rows, _ := object["rows"].([]any)
	for i, column := range columns {
		definition, _ := column.(map[string]any)
		definition["description"] = "<description>"
		if name := definition["name"]; name != "Age" && name != "Created At" {
			continue
		}
		for _, row := range rows {
			row, _ := row.(map[string]any)
			if cells, _ := row["cells"].([]any); i < len(cells) {
				cells[i] = "<age>"
			}
		}
	}
}

// sortManagers makes the order independent of the second in which each request arrived.
func sortManagers(value any) any {
	entries, ok := value.([]any)
	if !ok {
		return value
	}
	key := func(entry any) string {
		fields, _ := entry.(map[string]any)
		var parts []string
		for _, name := range []string{"manager", "operation", "subresource", "apiVersion"} {
			text, _ := fields[name].(string)
			parts = append(parts, text)
		}
		return strings.Join(parts, "\x00")
	}
	slices.SortStableFunc(entries, func(a, b any) int { return cmp.Compare(key(a), key(b)) })
	return entries
}
