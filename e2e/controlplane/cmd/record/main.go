// record sends the requests of a YAML file to a real API server, in order, and writes them with
// the server's answers as JSON lines. e2e/golden/README.md describes both files.
//
// usage: record KUBECONFIG REQUESTS.yaml >requests.jsonl
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// line is one request with its answer, as replayed against other servers.
type line struct {
	Name        string `json:"name"`
	Method      string `json:"method"`
	Path        string `json:"path"`
	ContentType string `json:"contentType,omitempty"`
	Accept      string `json:"accept,omitempty"`
	Stream      bool   `json:"stream,omitempty"`
	Retry       bool   `json:"retry,omitempty"`
	Body        any    `json:"body,omitempty"`
	Expect      answer `json:"expect"`
}

type answer struct {
	Code     int      `json:"code"`
	Warnings []string `json:"warnings,omitempty"`
	Body     any      `json:"body"`
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: record KUBECONFIG REQUESTS.yaml")
		os.Exit(2)
	}
	if err := record(os.Args[1], os.Args[2], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "record:", err)
		os.Exit(1)
	}
}

func record(kubeconfig, requests string, out io.Writer) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	// The name before the slash is what the server enters as manager into managedFields.
	config.UserAgent = "golden/1"
	config.QPS = -1
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	client.Timeout = 60 * time.Second
	lines, err := readRequests(requests)
	if err != nil {
		return err
	}
	answers := map[string]any{}
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	for i := range lines {
		raw, err := sendUntilFound(client, config.Host, &lines[i], answers)
		if err != nil {
			return fmt.Errorf("%s: %w", lines[i].Name, err)
		}
		answers[lines[i].Name] = raw
		if err := encoder.Encode(lines[i]); err != nil {
			return err
		}
	}
	fmt.Fprintf(os.Stderr, "record: %d requests\n", len(lines))
	return nil
}

// sendUntilFound repeats a line marked with retry while its answer is 404 or 429: what it asks for
// is something that the server makes a moment later.
func sendUntilFound(client *http.Client, host string, l *line, answers map[string]any) (any, error) {
	for attempt := 0; ; attempt++ {
		raw, err := send(client, host, l, answers)
		early := l.Expect.Code == http.StatusNotFound || l.Expect.Code == http.StatusTooManyRequests
		if err != nil || !l.Retry || !early || attempt == 100 {
			return raw, err
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// send fills in the line's expectation and returns the answer as it came.
func send(client *http.Client, host string, l *line, answers map[string]any) (any, error) {
	path, err := expand(l.Path, answers, true)
	if err != nil {
		return nil, err
	}
	body, err := bodyOf(l.Body, answers)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequest(l.Method, host+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if l.ContentType != "" {
		request.Header.Set("Content-Type", l.ContentType)
	}
	if l.Accept != "" {
		request.Header.Set("Accept", l.Accept)
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	l.Expect.Code = response.StatusCode
	l.Expect.Warnings = response.Header.Values("Warning")
	raw, err := decode(response.Body, l.Stream)
	if err != nil {
		return nil, err
	}
	l.Expect.Body = raw
	return raw, nil
}

// bodyOf gives the bytes to send: text as it is, everything else as JSON.
func bodyOf(body any, answers map[string]any) ([]byte, error) {
	switch body := body.(type) {
	case nil:
		return nil, nil
	case string:
		text, err := expand(body, answers, false)
		return []byte(text), err
	}
	encoded, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	text, err := expand(string(encoded), answers, false)
	return []byte(text), err
}

// decode reads one JSON value, or all values of a stream; what is not JSON becomes a string.
func decode(body io.Reader, stream bool) (any, error) {
	text, err := io.ReadAll(body)
	if err != nil {
		return nil, err
	}
	values := []any{}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	for {
		var value any
		err := decoder.Decode(&value)
		if err == io.EOF {
			break
		}
		if err != nil {
			return strings.TrimSpace(string(text)), nil
		}
		values = append(values, value)
	}
	if stream {
		return values, nil
	}
	if len(values) != 1 {
		return strings.TrimSpace(string(text)), nil
	}
	return values[0], nil
}
