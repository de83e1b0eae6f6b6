package differential

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes/scheme"
)

// Server is an API server that cases are replayed against.
type Server struct {
	// Client sends the requests, with whatever lets it in.
	Client *http.Client
	// URL is the base of the API.
	URL string
	// Reference says that it is the reference. Otherwise it answers as kube-apiserver.
	Reference bool
}

// Difference is an answer that is not the one of the case.
type Difference struct {
	// Step is the number of the request, from 1, and Request its text.
	Step    int
	Request string
	// What differs, such as "code", and the two values.
	What, Want, Got string
}

func (d Difference) String() string {
	return fmt.Sprintf("request %d (%s): %s is %s, want %s", d.Step, d.Request, d.What, d.Got, d.Want)
}

// Replay sends the requests of a case, in a namespace of their own that it removes afterwards. The error says that there was no answer.
func Replay(ctx context.Context, server Server, c Case) (differences []Difference, err error) {
	made, err := server.send(ctx, "POST /api/v1/namespaces", "", "", []byte(`{"metadata":{"generateName":"differential-"}}`))
	if err != nil {
		return nil, err
	}
	namespace, _ := at(made.object, "metadata.name").(string)
	if made.code != http.StatusCreated || namespace == "" {
		return nil, fmt.Errorf("make a namespace: %d %s", made.code, made.text)
	}
	defer func() {
		// The caller may have been interrupted: the namespace goes all the same.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer cancel()
		if _, gone := server.send(ctx, "DELETE /api/v1/namespaces/"+namespace, "", "", nil); err == nil {
			err = gone
		}
	}()
	here := strings.NewReplacer("{namespace}", namespace)
	for i := range c.Steps {
		step := &c.Steps[i]
		body, err := step.body()
		if err != nil {
			return nil, fmt.Errorf("request %d: %w", i+1, err)
		}
		got, err := server.send(ctx, here.Replace(step.Request), step.Type, step.Accept, []byte(here.Replace(string(body))))
		if err != nil {
			return nil, fmt.Errorf("request %d: %w", i+1, err)
		}
		want := &step.Kubernetes
		if server.Reference && step.Reference != nil {
			want = step.Reference
		}
		for _, d := range want.compare(got, here) {
			d.Step, d.Request = i+1, step.Request
			differences = append(differences, d)
		}
	}
	return differences, nil
}

// answered is what a server answered.
type answered struct {
	code     int
	warnings []string
	object   any // nil if it is no JSON
	text     string
}

// send sends one request, which is a method and a path.
func (s Server) send(ctx context.Context, request, mediaType, accept string, body []byte) (answered, error) {
	method, path, _ := strings.Cut(request, " ")
	r, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(s.URL, "/")+path, bytes.NewReader(body))
	if err != nil {
		return answered{}, err
	}
	if len(body) > 0 {
		if mediaType == "" {
			mediaType = "application/json"
		}
		r.Header.Set("Content-Type", mediaType)
	}
	if accept != "" {
		r.Header.Set("Accept", accept)
	}
	response, err := s.Client.Do(r)
	if err != nil {
		return answered{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return answered{}, err
	}
	a := answered{code: response.StatusCode, text: string(text)}
	headers, errs := utilnet.ParseWarningHeaders(response.Header["Warning"])
	if len(errs) > 0 {
		return answered{}, errs[0]
	}
	for _, h := range headers {
		a.warnings = append(a.warnings, h.Text)
	}
	if strings.HasPrefix(response.Header.Get("Content-Type"), protobufType) {
		if text, err = jsonOf(text); err != nil {
			return answered{}, err
		}
	}
	if strings.Contains(path, "watch=true") && a.code == http.StatusOK {
		a.object, err = eventsOf(text)
		return a, err
	}
	_ = json.Unmarshal(text, &a.object) // some answers are no JSON
	return a, nil
}

// eventsOf are the events of a watch that has ended, as one object.
func eventsOf(text []byte) (any, error) {
	events := []any{}
	for stream := json.NewDecoder(bytes.NewReader(text)); ; {
		var event any
		switch err := stream.Decode(&event); {
		case errors.Is(err, io.EOF):
			return map[string]any{"events": events}, nil
		case err != nil:
			return nil, fmt.Errorf("a watch ends within an event: %w", err)
		}
		events = append(events, event)
	}
}

// jsonOf is an object of protobuf as JSON.
func jsonOf(text []byte) ([]byte, error) {
	object, kind, err := scheme.Codecs.UniversalDeserializer().Decode(text, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("an answer is no object of protobuf: %w", err)
	}
	object.GetObjectKind().SetGroupVersionKind(*kind)
	return json.Marshal(object)
}

// compare says what of an answer is not as wanted.
func (want *Answer) compare(got answered, here *strings.Replacer) (differences []Difference) {
	differs := func(what string, want, got any) {
		differences = append(differences, Difference{What: what, Want: shown(want), Got: shown(got)})
	}
	if got.code != want.Code {
		differs("code", want.Code, got.code)
	}
	if got.code >= http.StatusBadRequest {
		reason, _ := at(got.object, "reason").(string)
		if reason != want.Reason {
			differs("reason", want.Reason, reason)
		}
		if causes := causesOf(got.object); !slices.Equal(causes, inOrder(want.Causes, nil)) {
			differs("causes", inOrder(want.Causes, nil), causes)
		}
	}
	if warnings := inOrder(got.warnings, nil); !slices.Equal(warnings, inOrder(want.Warnings, here)) {
		differs("warnings", inOrder(want.Warnings, here), warnings)
	}
	for _, path := range sortedKeys(want.Object) {
		wanted, is := want.Object[path], at(got.object, path)
		switch {
		case wanted == "*":
			if is == nil {
				differs(path, wanted, is)
			}
		case !same(wanted, is, here):
			differs(path, wanted, is)
		}
	}
	if want.Or != nil && len(differences) > 0 && len(want.Or.compare(got, here)) == 0 {
		return nil
	}
	return differences
}

// same compares a value of YAML with one of JSON.
func same(wanted, is any, here *strings.Replacer) bool {
	data, err := json.Marshal(wanted)
	if err != nil {
		return false
	}
	var normal any
	if err := json.Unmarshal([]byte(here.Replace(string(data))), &normal); err != nil {
		return false
	}
	return reflect.DeepEqual(normal, is)
}

// at returns the value at a path such as items.0.metadata.name, nil if there is none.
func at(value any, path string) any {
	for part := range strings.SplitSeq(path, ".") {
		switch v := value.(type) {
		case map[string]any:
			value = v[part]
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(v) {
				return nil
			}
			value = v[i]
		default:
			return nil
		}
	}
	return value
}

// causesOf are the fields that a Status names.
func causesOf(object any) []string {
	var fields []string
	causes, _ := at(object, "details.causes").([]any)
	for _, cause := range causes {
		if field, ok := at(cause, "field").(string); ok {
			fields = append(fields, field)
		}
	}
	return inOrder(fields, nil)
}

// inOrder returns sorted texts, with what stands for something replaced.
func inOrder(texts []string, here *strings.Replacer) []string {
	sorted := make([]string, len(texts))
	for i, text := range texts {
		if here != nil {
			text = here.Replace(text)
		}
		sorted[i] = text
	}
	slices.Sort(sorted)
	return sorted
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// shown is a value as people read it.
func shown(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(data)
}
