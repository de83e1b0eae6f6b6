package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Servers compares a run on real API servers with a bare client that sends as many requests of the same kinds. All times are processor seconds.
type Servers struct {
	Command string `json:"command"`
	Commit  string `json:"commit"`
	// Processor is that of the run, with all that it started.
	Processor float64 `json:"processor"`
	// Programs are what the run started.
	Programs []Program `json:"programs"`
	// Start is what a kube-apiserver takes until it is ready.
	Start float64 `json:"start"`
	// Requests are by kind, those that take most first.
	Requests []Requests `json:"requests"`
}

// Program is what the processes of a program took.
type Program struct {
	Program          string  `json:"program"`
	Processes        int     `json:"processes"`
	ProcessorSeconds float64 `json:"processorSeconds"`
}

// Requests are those of a kind that a run sent.
type Requests struct {
	Kind string `json:"kind"`
	N    int    `json:"n"`
	// Each is what one takes, sent by a bare client: in the client, in kube-apiserver and in etcd.
	Each float64 `json:"each"`
}

// Starts are the kube-apiservers that the run started.
func (s *Servers) Starts() int {
	for _, p := range s.Programs {
		if p.Program == "kube-apiserver" {
			return p.Processes
		}
	}
	return 0
}

// Bare is what the requests and the starts take without anything else.
func (s *Servers) Bare() float64 {
	sum := s.Start * float64(s.Starts())
	for _, r := range s.Requests {
		sum += r.Each * float64(r.N)
	}
	return sum
}

// Ratio is how many times as much the run takes.
func (s *Servers) Ratio() float64 { return s.Processor / s.Bare() }

// judgedBare is the run that is compared.
var judgedBare = []string{"run", "--tier", "lab", "--suite", "allocation,apischema"}

// measureServers runs the checks once for their time and once to count their requests, and then a bare client.
func measureServers(bin string, out io.Writer) error {
	bin, commit, file, err := subject(bin)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s := &Servers{Command: "conformance " + strings.Join(judgedBare, " "), Commit: commit}
	if s.Processor, err = judgeIn(bin, dir); err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(dir, "report.json"))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, s); err != nil {
		return err
	}
	fmt.Fprintf(out, "the run: %.0f s, %d kube-apiservers\n", s.Processor, s.Starts())
	counts, err := countRequests(bin, filepath.Join(dir, "counted"))
	if err != nil {
		return err
	}
	each, start, err := bareCosts(bin, dir, out)
	if err != nil {
		return err
	}
	s.Start = start
	for kind, n := range counts {
		s.Requests = append(s.Requests, Requests{Kind: kind, N: n, Each: each[kind]})
	}
	slices.SortFunc(s.Requests, func(a, b Requests) int {
		return cmp.Or(cmp.Compare(b.Each*float64(b.N), a.Each*float64(a.N)), cmp.Compare(a.Kind, b.Kind))
	})
	fmt.Fprintf(out, "a bare client: %.0f s; ratio %.2f\n", s.Bare(), s.Ratio())
	file.Servers = s
	if err := file.save(); err != nil {
		return err
	}
	fmt.Fprintln(out, "written:", file.path())
	return nil
}

// judgeIn runs the checks, with their report in the folder, and returns the processor time of all that it started.
func judgeIn(bin, dir string, flags ...string) (float64, error) {
	cmd := exec.Command(bin, append(append(slices.Clone(judgedBare), "--report-dir", dir), flags...)...)
	said, err := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code < 0 || code > 2 {
		return 0, fmt.Errorf("%w\n%s", err, said)
	}
	return (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds(), nil
}

// auditPolicy has the server write one line for each request.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: Metadata
`

// countRequests runs the checks on servers that write down their requests, and counts those of the run by kind.
func countRequests(bin, dir string) (map[string]int, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	policy, log := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "audit.log")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return nil, err
	}
	if _, err := judgeIn(bin, dir, "--kube-apiserver-flag=--audit-policy-file="+policy, "--kube-apiserver-flag=--audit-log-path="+log, "--kube-apiserver-flag=--audit-log-maxsize=4000"); err != nil {
		return nil, err
	}
	in, err := os.Open(log)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	counts := map[string]int{}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e struct {
			Verb           string `json:"verb"`
			UserAgent      string `json:"userAgent"`
			ResponseStatus struct {
				Code int `json:"code"`
			} `json:"responseStatus"`
		}
		if json.Unmarshal(lines.Bytes(), &e) != nil || strings.HasPrefix(e.UserAgent, "kube-apiserver/") { // it asks itself
			continue
		}
		counts[kindOf(e.Verb, e.ResponseStatus.Code)]++
	}
	return counts, lines.Err()
}

// kindOf is the kind under which a request is counted.
func kindOf(verb string, code int) string {
	switch verb {
	case "update", "patch":
		verb = "change"
	case "deletecollection":
		verb = "delete"
	case "watch":
		verb = "get"
	}
	if code >= http.StatusBadRequest {
		return verb + ", refused"
	}
	return verb
}

// bareRequests is how many requests of each kind the bare client sends, and bareClients how many at a time.
// Together the Services fill a /20, as the checks do that send most.
const bareRequests, bareClients = 4000, 4

// bareCosts starts a server, and returns what requests of each kind and the start take.
func bareCosts(bin, dir string, out io.Writer) (each map[string]float64, start float64, err error) {
	const name = "bench-servers"
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if said, err := exec.Command(bin, "lab", "up", "--name", name, "--nodes", "0", "--service-cidr", "10.96.0.0/20", "--kubeconfig", kubeconfig).CombinedOutput(); err != nil {
		return nil, 0, fmt.Errorf("%w\n%s", err, said)
	}
	defer func() { _ = exec.Command(bin, "lab", "down", "--name", name).Run() }()
	servers, err := serversOf(kubeconfig)
	if err != nil {
		return nil, 0, err
	}
	start = processorOf(servers[:1])
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, 0, err
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, 0, err
	}
	const services = "/api/v1/namespaces/default/services"
	service := func(i int, ip string) string {
		return fmt.Sprintf(`{"metadata":{"name":"s-%d"},"spec":{"clusterIP":%q,"ports":[{"port":80}]}}`, i, ip)
	}
	send := func(method, path, kind, body string, want int) error {
		request, err := http.NewRequestWithContext(context.Background(), method, config.Host+path, strings.NewReader(body))
		if err != nil {
			return err
		}
		request.Header.Set("Content-Type", kind)
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		answer, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err == nil && response.StatusCode != want {
			err = fmt.Errorf("%s %s: %s: %s", method, path, response.Status, answer)
		}
		return err
	}
	const json, merge = "application/json", "application/merge-patch+json"
	each = map[string]float64{}
	for _, kind := range []struct {
		name string
		send func(i int) error
	}{
		{"create", func(i int) error { return send("POST", services, json, service(i, ""), 201) }},
		{"create, refused", func(i int) error { return send("POST", services, json, service(i+bareRequests, "10.255.0.1"), 422) }},
		{"change", func(i int) error {
			return send("PATCH", fmt.Sprintf("%s/s-%d", services, i), merge, `{"metadata":{"labels":{"a":"b"}}}`, 200)
		}},
		{"change, refused", func(i int) error {
			return send("PATCH", fmt.Sprintf("%s/s-%d", services, i), merge, `{"spec":{"type":"None"}}`, 422)
		}},
		{"get", func(i int) error { return send("GET", fmt.Sprintf("%s/s-%d", services, i), json, "", 200) }},
		{"get, refused", func(i int) error { return send("GET", fmt.Sprintf("%s/none-%d", services, i), json, "", 404) }},
		{"list", func(int) error { return send("GET", services+"?limit=5", json, "", 200) }},
		{"list, refused", func(int) error { return send("GET", services+"?limit=x", json, "", 400) }},
		{"delete", func(i int) error { return send("DELETE", fmt.Sprintf("%s/s-%d", services, i), json, "", 200) }},
		{"delete, refused", func(i int) error { return send("DELETE", fmt.Sprintf("%s/s-%d", services, i), json, "", 404) }},
	} {
		before := processorOf(servers) + own()
		if err := manyTimes(kind.send); err != nil {
			return nil, 0, fmt.Errorf("%s: %w", kind.name, err)
		}
		each[kind.name] = (processorOf(servers) + own() - before) / bareRequests
		fmt.Fprintf(out, "%-16s %.1f ms\n", kind.name, 1000*each[kind.name])
	}
	return each, start, nil
}

// manyTimes calls send bareRequests times, by several clients at a time, and returns one of its errors.
func manyTimes(send func(i int) error) error {
	var next atomic.Int64
	var first error
	var once sync.Once
	var clients sync.WaitGroup
	for range bareClients {
		clients.Go(func() {
			for i := int(next.Add(1)); i <= bareRequests; i = int(next.Add(1)) {
				if err := send(i); err != nil {
					once.Do(func() { first = err })
				}
			}
		})
	}
	clients.Wait()
	return first
}

// serversOf are the process numbers of the kube-apiserver that a kubeconfig names, and of its etcd.
func serversOf(kubeconfig string) ([]string, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	port := config.Host[strings.LastIndexByte(config.Host, ':')+1:]
	server, line := processWith("--secure-port=" + port)
	if server == "" {
		return nil, fmt.Errorf("no process of a kube-apiserver on port %s", port)
	}
	_, etcd, found := strings.Cut(line, "--etcd-servers=")
	if etcd, _, _ = strings.Cut(etcd, " "); !found {
		return nil, fmt.Errorf("the kube-apiserver on port %s has no --etcd-servers", port)
	}
	storage, _ := processWith("--listen-client-urls=" + etcd)
	if storage == "" {
		return nil, fmt.Errorf("no process of etcd on %s", etcd)
	}
	return []string{server, storage}, nil
}

// processWith is the number and the command line of a process with an argument.
func processWith(argument string) (pid, line string) {
	paths, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		if arguments := bytes.Split(text, []byte{0}); slices.ContainsFunc(arguments, func(a []byte) bool { return string(a) == argument }) {
			return filepath.Base(filepath.Dir(path)), string(bytes.ReplaceAll(text, []byte{0}, []byte{' '}))
		}
	}
	return "", ""
}

// processorOf is what processes took up to now, in seconds.
func processorOf(pids []string) (seconds float64) {
	for _, pid := range pids {
		text, err := os.ReadFile("/proc/" + pid + "/stat")
		if err != nil {
			continue
		}
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		var user, system float64
		_, _ = fmt.Sscan(fields[11], &user)
		_, _ = fmt.Sscan(fields[12], &system)
		seconds += (user + system) / 100 // USER_HZ of Linux
	}
	return seconds
}

// own is what this process took up to now, in seconds.
func own() float64 {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return float64(usage.Utime.Sec+usage.Stime.Sec) + float64(usage.Utime.Usec+usage.Stime.Usec)/1e6
}
