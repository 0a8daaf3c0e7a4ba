package main

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// requestFile is the YAML form: written by people, so it is short where lines are explicit.
type requestFile struct {
	// Paths are abbreviations: "@pods/x" stands for the path called pods, followed by "/x".
	Paths map[string]string `json:"paths"`
	// Bases are objects that requests change a little with a merge patch.
	Bases    map[string]any `json:"bases"`
	Requests []request      `json:"requests"`
}

type request struct {
	Name   string `json:"name"`
	Get    string `json:"GET"`
	Post   string `json:"POST"`
	Put    string `json:"PUT"`
	Patch  string `json:"PATCH"`
	Delete string `json:"DELETE"`
	Type   string `json:"type"`
	Accept string `json:"accept"`
	Stream bool   `json:"stream"`
	Retry  bool   `json:"retry"`
	// Of and With make the body: a base and the merge patch on it. Body is the whole body instead.
	Of   string `json:"of"`
	With any    `json:"with"`
	Body any    `json:"body"`
}

var contentTypes = map[string]string{
	"":          "application/json",
	"merge":     "application/merge-patch+json",
	"json":      "application/json-patch+json",
	"strategic": "application/strategic-merge-patch+json",
	"apply":     "application/apply-patch+yaml",
}

func readRequests(path string) ([]line, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var file requestFile
	if err := yaml.UnmarshalStrict(text, &file); err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	lines := make([]line, 0, len(file.Requests))
	for _, r := range file.Requests {
		if seen[r.Name] || r.Name == "" {
			return nil, fmt.Errorf("request %q: names must be given and unique", r.Name)
		}
		seen[r.Name] = true
		l, err := file.line(r)
		if err != nil {
			return nil, fmt.Errorf("request %q: %w", r.Name, err)
		}
		lines = append(lines, l)
	}
	return lines, nil
}

func (f *requestFile) line(r request) (line, error) {
	l := line{Name: r.Name, Accept: r.Accept, Stream: r.Stream, Retry: r.Retry, Body: r.Body}
	for method, path := range map[string]string{
		"GET": r.Get, "POST": r.Post, "PUT": r.Put, "PATCH": r.Patch, "DELETE": r.Delete,
	} {
		if path == "" {
			continue
		}
		if l.Method != "" {
			return l, fmt.Errorf("two methods")
		}
		l.Method, l.Path = method, path
	}
	if l.Method == "" {
		return l, fmt.Errorf("no method")
	}
	if rest, ok := strings.CutPrefix(l.Path, "@"); ok {
		end := strings.IndexAny(rest, "/?")
		if end < 0 {
			end = len(rest)
		}
		full, known := f.Paths[rest[:end]]
		if !known {
			return l, fmt.Errorf("unknown path @%s", rest[:end])
		}
		l.Path = full + rest[end:]
	}
	if r.Of != "" {
		base, known := f.Bases[r.Of]
		if !known {
			return l, fmt.Errorf("unknown base %s", r.Of)
		}
		l.Body = merge(clone(base), r.With)
	}
	if l.Body != nil {
		l.ContentType = r.Type
		if full, known := contentTypes[r.Type]; known {
			l.ContentType = full
		}
	}
	return l, nil
}

// merge applies a JSON merge patch, except that null stays null: requests must be able to send it.
// The text "$absent" removes a field.
func merge(target, patch any) any {
	changes, ok := patch.(map[string]any)
	if !ok {
		if patch == nil {
			return target
		}
		return patch
	}
	object, ok := target.(map[string]any)
	if !ok {
		object = map[string]any{}
	}
	for key, value := range changes {
		switch value {
		case nil:
			object[key] = nil
		case "$absent":
			delete(object, key)
		default:
			object[key] = merge(object[key], value)
		}
	}
	return object
}

func clone(value any) any {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // it came from JSON
	}
	var copied any
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.UseNumber()
	if err := decoder.Decode(&copied); err != nil {
		panic(err)
	}
	return copied
}

var placeholder = regexp.MustCompile(`\$\{([^:}]+):(/[^}]*)\}`)

// expand replaces ${name:/json/pointer} by what the answer to the request of that name holds there.
func expand(text string, answers map[string]any, escape bool) (string, error) {
	var failure error
	expanded := placeholder.ReplaceAllStringFunc(text, func(match string) string {
		parts := placeholder.FindStringSubmatch(match)
		value, err := lookUp(answers[parts[1]], parts[2])
		if err != nil {
			failure = fmt.Errorf("%s: %w", match, err)
			return match
		}
		if escape {
			return url.QueryEscape(value)
		}
		return value
	})
	return expanded, failure
}

func lookUp(value any, pointer string) (string, error) {
	for _, key := range strings.Split(pointer, "/")[1:] {
		switch node := value.(type) {
		case map[string]any:
			value = node[key]
		case []any:
			index, err := strconv.Atoi(key)
			if err != nil || index < 0 || index >= len(node) {
				return "", fmt.Errorf("no element %s", key)
			}
			value = node[index]
		default:
			return "", fmt.Errorf("nothing at %s", key)
		}
	}
	text, ok := value.(string)
	if !ok {
		return "", fmt.Errorf("not a string")
	}
	return text, nil
}
