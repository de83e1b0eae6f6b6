package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// The test binary stands in for the programs that the package runs: under the name of one of them it behaves as
// that program does, as far as the package can see. Variables that begin with FAKE_ choose how it misbehaves.
func TestMain(m *testing.M) {
	name := strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe")
	if program := platformPrograms[name]; program != nil {
		program(os.Args[1:])
		return
	}
	switch name {
	case "go":
		fakeGo(os.Args[1:])
	case "etcd":
		fakeEtcd(os.Args[1:])
	case "kube-apiserver":
		fakeAPIServer(os.Args[1:])
	case "forever":
		fmt.Println("running")
		io.Copy(io.Discard, os.Stdin)
		select {}
	case "parent":
		fakeParent(os.Args[1:])
	default:
		check(PrepareIsolation())
		os.Setenv("GORACE", "atexit_sleep_ms=0") // or every fake program lives a second longer under the race detector
		os.Exit(m.Run())
	}
}

// platformPrograms are further ones that not every system has.
var platformPrograms = map[string]func(args []string){}

// fakeParent starts a server, says which and goes on until it is killed.
func fakeParent(args []string) {
	p, err := startProcess(command{name: "forever", path: args[0], log: args[1]})
	check(err)
	fmt.Println(p.pid)
	select {}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "E0101 fake:", err)
		os.Exit(1)
	}
}

// installFakes puts programs into a folder.
func installFakes(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		copyProgram(t, self, filepath.Join(dir, binaryName(Component(n))))
	}
	return dir
}

func copyProgram(t *testing.T, from, to string) {
	t.Helper()
	if os.Link(from, to) == nil {
		return
	}
	b, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, b, 0o755); err != nil {
		t.Fatal(err)
	}
}

// fakeUpstreamGoMod is what the fake go command downloads as the go.mod of Kubernetes.
const fakeUpstreamGoMod = `module k8s.io/kubernetes

go 1.26.0

godebug default=go1.26

require (
	example.com/library v1.2.3
	go.etcd.io/etcd/client/v3 v3.7.0
	k8s.io/api v0.0.0
	k8s.io/client-go v0.0.0
)

require go.etcd.io/bbolt v1.5.0 // indirect

replace (
	k8s.io/api => ./staging/src/k8s.io/api
	k8s.io/client-go => ./staging/src/k8s.io/client-go
)
`

// fakeGo is a go command that needs no network and compiles nothing.
func fakeGo(args []string) {
	if calls := os.Getenv("FAKE_GO_CALLS"); calls != "" {
		f, err := os.OpenFile(calls, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		check(err)
		fmt.Fprintln(f, strings.Join(args, " "))
		f.Close()
	}
	switch {
	case args[0] == "env":
		fmt.Println("go1.26.8")
	case args[0] == "mod":
		info := map[string]string{"Path": "k8s.io/kubernetes"}
		if reason := os.Getenv("FAKE_DOWNLOAD_ERROR"); reason != "" {
			info["Error"] = reason
		} else {
			wd, err := os.Getwd()
			check(err)
			info["GoMod"] = filepath.Join(wd, "upstream.mod")
			check(os.WriteFile(info["GoMod"], []byte(fakeUpstreamGoMod), 0o644))
		}
		json.NewEncoder(os.Stdout).Encode(info)
		if info["Error"] != "" {
			os.Exit(1)
		}
	case args[0] == "list" && slices.Contains(args, "-m"):
		for _, a := range args {
			path, version, ok := strings.Cut(a, "@")
			if !ok {
				continue
			}
			info := map[string]any{"Path": path, "Version": version}
			if path == os.Getenv("FAKE_MISSING_MODULE") {
				info["Error"] = map[string]string{"Err": "unknown revision " + version}
			}
			json.NewEncoder(os.Stdout).Encode(info)
		}
	case args[0] == "list":
		fmt.Println("fmt\nos\nexample.com/library")
	case args[0] == "build":
		if os.Getenv("FAKE_BUILD") == "hang" {
			select {}
		}
		if os.Getenv("FAKE_BUILD") == "fail" {
			fmt.Fprintln(os.Stderr, "example.com/library\nlibrary.go:3:1: undefined: thing")
			os.Exit(1)
		}
		fmt.Fprintln(os.Stderr, "go: downloading example.com/library v1.2.3\nfmt\nexample.com/library")
		out := args[slices.Index(args, "-o")+1]
		check(os.MkdirAll(out, 0o755))
		self, err := os.Executable()
		check(err)
		program, err := os.ReadFile(self)
		check(err)
		for _, pkg := range args[slices.Index(args, "-o")+2:] {
			name := pkg[strings.LastIndexByte(pkg, '/')+1:]
			check(os.WriteFile(filepath.Join(out, binaryName(Component(name))), program, 0o755))
		}
	}
}

// serverFlags reads --name=value arguments.
func serverFlags(args []string) map[string]string {
	flags := map[string]string{}
	for _, a := range args {
		name, value, _ := strings.Cut(strings.TrimPrefix(a, "--"), "=")
		flags[name] = value
	}
	return flags
}

func fakeEtcd(args []string) {
	flags := serverFlags(args)
	if _, ok := flags["version"]; ok {
		fmt.Println("etcd Version: 3.7.0")
		return
	}
	network, address, _ := strings.Cut(flags["listen-client-urls"], "://")
	if network == "http" {
		network = "tcp"
	}
	l, err := net.Listen(network, address)
	check(err)
	for {
		c, err := l.Accept()
		check(err)
		c.Close()
	}
}

func fakeAPIServer(args []string) {
	fs := serverFlags(args)
	if _, ok := fs["version"]; ok {
		v := os.Getenv("FAKE_VERSION")
		if v == "" {
			v = DefaultVersion
		}
		fmt.Println("Kubernetes " + v)
		return
	}
	if reason := os.Getenv("FAKE_APISERVER_ERROR"); reason != "" {
		check(errors.New(reason))
	}
	if os.Getenv("FAKE_APISERVER") == "hang" {
		select {}
	}
	tokens, err := os.ReadFile(fs["token-auth-file"])
	check(err)
	token, _, _ := strings.Cut(string(tokens), ",")
	mux := http.NewServeMux()
	answer := func(pattern, body string) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer "+token {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			io.WriteString(w, body)
		})
	}
	const kubernetes = `{"metadata":{"name":"kubernetes","namespace":"default"},"spec":{"clusterIPs":["10.96.0.1"]}}`
	answer("GET /readyz", "ok")
	answer("GET "+kubernetesServicePath, kubernetes)
	answer("GET "+servicePath, `{"items":[`+kubernetes+`]}`)
	answer("GET "+serviceCIDRPath+"/kubernetes", `{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`)
	answer("GET "+serviceCIDRPath, `{"items":[{"metadata":{"name":"kubernetes"}}]}`)
	// As the real one, it begins to allocate after it says that it is ready.
	var trials atomic.Int64
	mux.HandleFunc("POST "+defaultServicesPath, func(w http.ResponseWriter, r *http.Request) {
		if trials.Add(1) == 1 {
			http.Error(w, "allocator not ready", http.StatusInternalServerError)
			return
		}
		io.Copy(w, r.Body)
	})
	answer("GET "+ipAddressPath, `{"items":[{"metadata":{"name":"10.96.0.1"}}]}`)
	check(http.ListenAndServeTLS(net.JoinHostPort(fs["bind-address"], fs["secure-port"]), fs["tls-cert-file"], fs["tls-private-key-file"], mux))
}

// onWindows reports whether file modes and signals mean nothing.
func onWindows() bool { return runtime.GOOS == "windows" }
