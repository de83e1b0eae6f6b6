package apiserver

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// startServer starts a server that ends with the test. Without ranges it gets 10.96.0.0/24.
func startServer(t testing.TB, options Options) *Server {
	t.Helper()
	if len(options.ServiceCIDRs) == 0 {
		options.ServiceCIDRs = []netip.Prefix{netip.MustParsePrefix("10.96.0.0/24")}
	}
	s, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// clientFor makes a client-go client that is not held back by its own rate limit.
func clientFor(t testing.TB, s *Server, contentType string) kubernetes.Interface {
	t.Helper()
	c, err := kubernetes.NewForConfig(&rest.Config{
		Host: s.URL(), BearerToken: s.Token(), QPS: -1,
		ContentConfig:   rest.ContentConfig{ContentType: contentType, AcceptContentTypes: contentType},
		TLSClientConfig: rest.TLSClientConfig{CAData: s.CA()},
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func newService(name string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80}}, Selector: map[string]string{"app": name}},
	}
}

func TestNewControlPlaneHasWhatEveryClusterHas(t *testing.T) {
	g, ctx := NewWithT(t), context.Background()
	s := startServer(t, Options{})
	c := clientFor(t, s, mediaJSON)
	for _, name := range []string{"default", "kube-system", "kube-public", "kube-node-lease"} {
		ns, err := c.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(ns.Status.Phase).To(Equal(corev1.NamespaceActive))
		g.Expect(ns.Labels).To(HaveKeyWithValue(corev1.LabelMetadataName, name))
	}
	svc, err := c.CoreV1().Services("default").Get(ctx, "kubernetes", metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(svc.Spec.ClusterIP).To(Equal("10.96.0.1"))
	cidr, err := c.NetworkingV1().ServiceCIDRs().Get(ctx, "kubernetes", metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(cidr.Spec.CIDRs).To(ConsistOf("10.96.0.0/24"))
	g.Expect(cidr.Status.Conditions).To(ContainElement(HaveField("Type", "Ready")))
	g.Expect(c.CoreV1().Services("default").Delete(ctx, "kubernetes", metav1.DeleteOptions{})).To(Succeed())
	again, err := c.CoreV1().Services("default").Get(ctx, "kubernetes", metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred(), "the API server keeps its own Service")
	g.Expect(again.UID).NotTo(Equal(svc.UID))
	g.Expect(again.Spec.ClusterIP).To(Equal("10.96.0.1"))
	address, err := c.NetworkingV1().IPAddresses().Get(ctx, "10.96.0.1", metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(address.Spec.ParentRef.Name).To(Equal("kubernetes"))
	version, err := c.Discovery().ServerVersion()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(version.GitVersion).To(Equal(DefaultVersion))
}

func TestOptionsThatMakeNoSenseAreRefused(t *testing.T) {
	for name, o := range map[string]Options{
		"no range":         {},
		"same family":      {ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24"), netip.MustParsePrefix("10.1.0.0/24")}},
		"version":          {ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24")}, Version: "banana"},
		"no first address": {ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/32")}},
		"TLS address":      {ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24")}, TLS: true, Address: "nonsense"},
	} {
		if _, err := New(o); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	s := startServer(t, Options{})
	busy, err := New(Options{ServiceCIDRs: s.ServiceCIDRs(), Address: s.address})
	if err != nil {
		t.Fatal(err)
	}
	if err := busy.Start(); err == nil {
		t.Error("started on a port in use")
	}
}

func TestTokenAndTLS(t *testing.T) {
	g := NewWithT(t)
	s := startServer(t, Options{Token: "secret", TLS: true})
	path := filepath.Join(t.TempDir(), "kubeconfig")
	g.Expect(s.WriteKubeconfig(path)).To(Succeed())
	info, err := os.Stat(path)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(info.Mode().Perm()).To(Equal(os.FileMode(0o600)))
	g.Expect(s.WriteKubeconfig(path)).To(Succeed(), "its own kubeconfig is written again")
	foreign := filepath.Join(t.TempDir(), "config")
	g.Expect(os.WriteFile(foreign, []byte("apiVersion: v1\nkind: Config\ncontexts: [{name: mine, context: {cluster: mine}}]\n"), 0o600)).To(Succeed())
	g.Expect(s.WriteKubeconfig(foreign)).To(MatchError(ContainSubstring("left alone")))
	g.Expect(s.WriteKubeconfig(filepath.Join(t.TempDir(), "missing", "kubeconfig"))).NotTo(Succeed())

	config, err := clientcmd.BuildConfigFromFlags("", path)
	g.Expect(err).NotTo(HaveOccurred())
	c, err := kubernetes.NewForConfig(config)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = c.CoreV1().Services("default").List(t.Context(), metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())

	config.BearerToken = "wrong"
	c, err = kubernetes.NewForConfig(config)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = c.CoreV1().Services("default").List(t.Context(), metav1.ListOptions{})
	g.Expect(apierrors.IsUnauthorized(err)).To(BeTrue(), "%v", err)

	insecure := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	for _, path := range []string{"/healthz", "/readyz", "/livez", "/readyz?verbose", "/livez/ping"} {
		resp, err := insecure.Get(s.URL() + path)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(resp.StatusCode).To(Equal(http.StatusOK), path)
		g.Expect(resp.Body.Close()).To(Succeed())
	}
}

func TestRestartKeepsEverythingAndCutsConnections(t *testing.T) {
	g, ctx := NewWithT(t), context.Background()
	s := startServer(t, Options{})
	c := clientFor(t, s, mediaJSON)
	created, err := c.CoreV1().Services("default").Create(ctx, newService("a"), metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	w, err := c.CoreV1().Services("default").Watch(ctx, metav1.ListOptions{ResourceVersion: created.ResourceVersion})
	g.Expect(err).NotTo(HaveOccurred())
	url := s.URL()

	g.Expect(s.Restart(ctx)).To(Succeed())
	g.Expect(s.URL()).To(Equal(url))
	g.Eventually(w.ResultChan()).Should(BeClosed())

	after, err := c.CoreV1().Services("default").Get(ctx, "a", metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(after).To(Equal(created))
	duplicate := newService("b")
	duplicate.Spec.ClusterIP = created.Spec.ClusterIP
	_, err = c.CoreV1().Services("default").Create(ctx, duplicate, metav1.CreateOptions{})
	g.Expect(apierrors.IsInvalid(err)).To(BeTrue(), "the address was given out twice: %v", err)

	g.Expect(c.CoreV1().Services("default").Delete(ctx, "a", metav1.DeleteOptions{})).To(Succeed())
	_, err = c.CoreV1().Services("default").Create(ctx, duplicate, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.Close()).To(Succeed())
	g.Expect(s.Restart(ctx)).NotTo(Succeed())
}

// send makes one request by hand and returns the answer with its body read.
func send(t testing.TB, s *Server, method, path, contentType, body string) (*http.Response, string) {
	t.Helper()
	resp, text, err := trySend(t.Context(), s, method, path, map[string]string{"Content-Type": contentType}, body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, text
}

func trySend(ctx context.Context, s *Server, method, path string, header map[string]string, body string) (*http.Response, string, error) {
	r, err := http.NewRequestWithContext(ctx, method, s.URL()+path, readerOf(body))
	if err != nil {
		return nil, "", err
	}
	for k, v := range header {
		if v != "" {
			r.Header.Set(k, v)
		}
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, "", err
	}
	data, err := io.ReadAll(resp.Body)
	return resp, string(data), errors.Join(err, resp.Body.Close())
}

func TestASlowBodyIsGivenUp(t *testing.T) {
	g := NewWithT(t)
	defer func(d time.Duration) { readBodyTimeout = d }(readBodyTimeout)
	readBodyTimeout = 10 * time.Millisecond
	s := startServer(t, Options{})
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL(), "http://"))
	g.Expect(err).NotTo(HaveOccurred())
	defer conn.Close()
	_, err = io.WriteString(conn, "POST /api/v1/namespaces/default/services HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
	g.Expect(err).NotTo(HaveOccurred())
	answer, err := io.ReadAll(conn) // the server ends the connection, too
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(answer)).To(ContainSubstring("400 Bad Request"))
}
