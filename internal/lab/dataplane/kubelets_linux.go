package dataplane

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/service-conformance/conformance/internal/lab/controlplane"
)

// kubeletPort is where an API server asks the kubelet of a node for the logs of pods and for what runs in them.
const kubeletPort = 10250

// StartKubelets answers in the place of kubelets, on each node of a lab that stays: that pods have no containers, and what to do instead.
func StartKubelets(w *World) error {
	certificate, key, err := w.parts.CA.Serving(controlplane.APIServerNames)
	if err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler: http.HandlerFunc(sayWhatPodsAre), ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12},
	}
	for _, n := range w.Shared {
		var listener net.Listener
		err := n.network.Do(func() (err error) {
			listener, err = net.Listen("tcp", fmt.Sprintf(":%d", kubeletPort))
			return err
		})
		if err != nil {
			return fmt.Errorf("answer for the kubelet of %s: %w", n.Name, err)
		}
		go func() { _ = server.ServeTLS(listener, "", "") }()
	}
	return nil
}

// sayWhatPodsAre answers requests to a kubelet, whose paths are KIND/NAMESPACE/POD and more. With this code kubectl shows the text.
func sayWhatPodsAre(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/"), "/")
	pod := "NAMESPACE/POD"
	if len(parts) >= 3 {
		pod = parts[1] + "/" + parts[2]
	}
	text := "a pod of the lab is a network namespace with a backend, without containers"
	switch parts[0] {
	case "containerLogs":
		text += ": it has no logs"
	case "exec", "run", "attach":
		text += fmt.Sprintf(": run a command in it with `conformance lab shell %s -- COMMAND`", pod)
	case "portForward":
		text += fmt.Sprintf(": reach it from a node (`conformance lab shell node-1 -- curl …`) or from within (`conformance lab shell %s`)", pod)
	}
	if parts[0] == "portForward" { // of this request kubectl shows nothing but a Status
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_ = json.NewEncoder(w).Encode(apierrors.NewBadRequest(text).Status())
		return
	}
	http.Error(w, text, http.StatusBadRequest)
}
