package traffic

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/service-conformance/conformance/framework/candidate"
)

// Bounds of what is read from a peer.
const (
	maxLine    = 4 << 10 // of a request or an answer
	maxHeaders = 100
)

// answer is what a Server says.
type answer struct {
	// Request is the line or datagram that is answered; of HTTP, the request target.
	Request   string         `json:"request"`
	Namespace string         `json:"namespace"`
	Pod       string         `json:"pod"`
	Port      int            `json:"port"`
	Source    netip.AddrPort `json:"source"`
}

// line is the answer as it is sent.
func (a *answer) line() []byte {
	b, err := json.Marshal(a)
	if err != nil {
		panic(err) // it consists of text and numbers
	}
	return append(b, '\n')
}

// http is the answer to an HTTP request.
func (a *answer) http(last bool) []byte {
	body, connection := a.line(), ""
	if last {
		connection = "Connection: close\r\n"
	}
	return fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%s\r\n%s", len(body), connection, body)
}

// fill writes into the outcome what the answer says.
func (a *answer) fill(o *candidate.Outcome) {
	o.Pod, o.PodPort, o.Source = candidate.PodName{Namespace: a.Namespace, Name: a.Pod}, a.Port, a.Source
}

// errStranger says that somebody answered who is no Server.
var errStranger = errors.New("the answer is none of a backend")

// parseAnswer reads an answer line. It fails if that is none of a Server's.
func parseAnswer(line []byte) (answer, error) {
	var a answer
	if err := json.Unmarshal(line, &a); err != nil {
		return answer{}, fmt.Errorf("%w: %w: %.80q", errStranger, err, line)
	}
	if a.Pod == "" || a.Port < 1 || a.Port > 65535 || !a.Source.IsValid() {
		return answer{}, fmt.Errorf("%w: it lacks a pod, a port or a source: %.80q", errStranger, line)
	}
	return a, nil
}

// request is what a client asks.
type request struct {
	text string // the line, or the target of HTTP
	http bool
	last bool // the connection ends with the answer
}

var errRequest = errors.New("malformed request")

// readRequest reads the next request of a connection. The reader's buffer bounds a line.
func readRequest(r *bufio.Reader) (request, error) {
	line, err := readLine(r)
	if err != nil || !strings.HasPrefix(line, "GET ") {
		return request{text: line}, err
	}
	fields := strings.Split(line, " ")
	if len(fields) != 3 || !strings.HasPrefix(fields[2], "HTTP/1.") {
		return request{}, errRequest
	}
	q := request{text: fields[1], http: true, last: fields[2] == "HTTP/1.0"}
	for range maxHeaders {
		line, err := readLine(r)
		if err != nil {
			return request{}, err
		}
		if line == "" {
			return q, nil
		}
		name, value, _ := strings.Cut(strings.ToLower(line), ":")
		switch value = strings.TrimSpace(value); {
		case name == "connection" && value == "close",
			name == "content-length" && value != "0", name == "transfer-encoding": // a body, which is not read
			q.last = true
		}
	}
	return request{}, errRequest
}

// readLine reads a line and removes its end.
func readLine(r *bufio.Reader) (string, error) {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return "", err
	}
	return string(bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))), nil
}
