// Package fakes has programs that stand in for the real ones in tests of the lab. The test binary behaves as etcd,
// kube-apiserver or go under their names.
package fakes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/service-conformance/conformance/internal/leaktest"
)

// Programs are those of the package under test, by name, beside those of this one. They are set before Main runs.
var Programs = map[string]func(args []string){}

// Main is the TestMain of a package. Under the name of a program the test binary behaves as that program does, as far as the lab can see. Variables that begin
// with FAKE_ choose how it misbehaves. prepare is called before the tests. version is that of Kubernetes which kube-apiserver reports.
func Main(m *testing.M, version string, prepare func() error) {
	name := strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe")
	if program := Programs[name]; program != nil {
		program(os.Args[1:])
		return
	}
	switch name {
	case "go":
		goTool(os.Args[1:])
	case "etcd":
		etcd(os.Args[1:])
	case "kube-apiserver":
		apiServer(version, os.Args[1:])
	case "forever":
		fmt.Println("running")
		io.Copy(io.Discard, os.Stdin)
		select {}
	default:
		Check(prepare())
		os.Setenv("GORACE", "atexit_sleep_ms=0") // or every fake program lives a second longer under the race detector
		os.Exit(leaktest.Run(m, "github.com/service-conformance/conformance/internal/lab/process.spawnForEver"))
	}
}

// Check ends a program that failed, as the real ones do.
func Check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "E0101 fake:", err)
		os.Exit(1)
	}
}

// Install puts programs into a folder of the test, and returns it.
func Install(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		Copy(t, self, filepath.Join(dir, BinaryName(n)))
	}
	return dir
}

// Copy makes a program known by another name.
func Copy(t *testing.T, from, to string) {
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

// UpstreamGoMod is what the fake go command downloads as the go.mod of Kubernetes.
const UpstreamGoMod = `module k8s.io/kubernetes

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

// goTool is a go command that needs no network and compiles nothing.
func goTool(args []string) {
	if calls := os.Getenv("FAKE_GO_CALLS"); calls != "" {
		f, err := os.OpenFile(calls, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		Check(err)
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
			Check(err)
			info["GoMod"] = filepath.Join(wd, "upstream.mod")
			Check(os.WriteFile(info["GoMod"], []byte(UpstreamGoMod), 0o644))
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
		Check(os.MkdirAll(out, 0o755))
		self, err := os.Executable()
		Check(err)
		program, err := os.ReadFile(self)
		Check(err)
		for _, pkg := range args[slices.Index(args, "-o")+2:] {
			name := pkg[strings.LastIndexByte(pkg, '/')+1:]
			Check(os.WriteFile(filepath.Join(out, BinaryName(name)), program, 0o755))
		}
	}
}

// ServerFlags reads --name=value arguments.
func ServerFlags(args []string) map[string]string {
	flags := map[string]string{}
	for _, a := range args {
		name, value, _ := strings.Cut(strings.TrimPrefix(a, "--"), "=")
		flags[name] = value
	}
	return flags
}

func etcd(args []string) {
	flags := ServerFlags(args)
	if _, ok := flags["version"]; ok {
		fmt.Println("etcd Version: 3.7.0")
		return
	}
	network, address, _ := strings.Cut(flags["listen-client-urls"], "://")
	if network == "http" {
		network = "tcp"
	}
	l, err := net.Listen(network, address)
	Check(err)
	for {
		c, err := l.Accept()
		Check(err)
		c.Close()
	}
}

func apiServer(version string, args []string) {
	fs := ServerFlags(args)
	if _, ok := fs["version"]; ok {
		v := os.Getenv("FAKE_VERSION")
		if v == "" {
			v = version
		}
		fmt.Println("Kubernetes " + v)
		return
	}
	if reason := os.Getenv("FAKE_APISERVER_ERROR"); reason != "" {
		Check(errors.New(reason))
	}
	if os.Getenv("FAKE_APISERVER") == "hang" {
		select {}
	}
	tokens, err := os.ReadFile(fs["token-auth-file"])
	Check(err)
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
	const (
		services     = "/api/v1/namespaces/default/services"
		serviceCIDRs = "/apis/networking.k8s.io/v1/servicecidrs"
		ipAddresses  = "/apis/networking.k8s.io/v1/ipaddresses"
	)
	const kubernetes = `{"metadata":{"name":"kubernetes","namespace":"default"},"spec":{"clusterIPs":["10.96.0.1"]}}`
	answer("GET /readyz", "ok")
	answer("GET "+services+"/kubernetes", kubernetes)
	answer("GET /api/v1/services", `{"items":[`+kubernetes+`]}`)
	answer("GET "+serviceCIDRs+"/kubernetes", `{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`)
	answer("GET "+serviceCIDRs, `{"items":[{"metadata":{"name":"kubernetes"}}]}`)
	// As the real one, it begins to allocate after it says that it is ready.
	var trials atomic.Int64
	mux.HandleFunc("POST "+services, func(w http.ResponseWriter, r *http.Request) {
		if trials.Add(1) == 1 {
			http.Error(w, "allocator not ready", http.StatusInternalServerError)
			return
		}
		io.Copy(w, r.Body)
	})
	answer("GET "+ipAddresses, `{"items":[{"metadata":{"name":"10.96.0.1"}}]}`)
	Check(http.ListenAndServeTLS(net.JoinHostPort(fs["bind-address"], fs["secure-port"]), fs["tls-cert-file"], fs["tls-private-key-file"], mux))
}

// OnWindows reports whether file modes and signals mean nothing.
func OnWindows() bool { return runtime.GOOS == "windows" }

// BinaryName is the name of a program's file on this system.
func BinaryName(program string) string {
	if OnWindows() {
		return program + ".exe"
	}
	return program
}

// Must ends the test if something that it needs has failed.
func Must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Until waits for something to become true; the test's own time limit ends the wait.
func Until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for !holds() {
		select {
		case <-t.Context().Done():
			t.Fatalf("%s: %v", what, context.Cause(t.Context()))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Prefixes are ranges of addresses.
func Prefixes(cidrs ...string) []netip.Prefix {
	var ps []netip.Prefix
	for _, c := range cidrs {
		ps = append(ps, netip.MustParsePrefix(c))
	}
	return ps
}

// Exists reports whether there is something at a path.
func Exists(t *testing.T, path string) bool {
	t.Helper()
	_, err := os.Stat(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return err == nil
}
