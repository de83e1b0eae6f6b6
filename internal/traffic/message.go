package traffic

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strconv"
	"strings"

	"github.com/service-conformance/conformance/framework/candidate"
)

// Bounds of what is read from a peer.
const (
	maxLine     = 4 << 10  // of a request or an answer
	maxDatagram = 64 << 10 // with content
	maxHeaders  = 100
)

// answer is what a Server says.
type answer struct {
	// Request is the line or datagram that is answered; of HTTP, the request target.
	Request   string         `json:"request"`
	Namespace string         `json:"namespace"`
	Pod       string         `json:"pod"`
	Port      int            `json:"port"`
	Source    netip.AddrPort `json:"source"`
	// Payload is how many bytes of content the request carried as they were sent. As many follow the line.
	Payload int `json:"payload,omitempty"`
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

// sized is what a request begins with that carries content: "SIZED token n", the end of the line, and n bytes. A datagram has n bytes with the line.
const sized = "SIZED "

// content is n bytes that the text stands for; no part of them is like another.
func content(text string, n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8(sha256.Sum256([]byte(text))).Read(b) // it never fails
	return b
}

// errAltered says that content came otherwise than it was sent.
var errAltered = errors.New("the content came altered")

// sizedHead is the first line of a request with content.
func sizedHead(token string, n int) string { return fmt.Sprintf("%s%s %d\n", sized, token, n) }

// parseSized reads the first line of a request, without its end. ok is false if it carries no content.
func parseSized(line string) (token string, n int, ok bool) {
	fields := strings.Split(line, " ")
	if len(fields) != 3 || fields[0]+" " != sized {
		return "", 0, false
	}
	n, err := strconv.Atoi(fields[2])
	return fields[1], n, err == nil && n > 0 && n <= candidate.MaxPayload
}

// sizedDatagram is a request of n bytes.
func sizedDatagram(token string, n int) []byte {
	head := sizedHead(token, n)
	return append([]byte(head), content(token, max(0, n-len(head)))...)
}

// backwards is the text that the content of an answer stands for.
func backwards(token string) string { return token + " back" }

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
	text string // the line, the target of HTTP, or the token of one that carries content
	size int    // of the content
	http bool
	last bool // the connection ends with the answer
}

var errRequest = errors.New("malformed request")

// readRequest reads the next request of a connection. The reader's buffer bounds a line.
func readRequest(r *bufio.Reader) (request, error) {
	line, err := readLine(r)
	if err != nil {
		return request{}, err
	}
	if token, n, ok := parseSized(line); ok {
		return request{text: token, size: n}, nil
	}
	if !strings.HasPrefix(line, "GET ") {
		return request{text: line}, nil
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
