package apiserver

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Kubeconfig returns a kubeconfig that reaches the server with full rights. The server must have been started.
func (s *Server) Kubeconfig() ([]byte, error) {
	url := s.URL()
	if url == "" {
		return nil, errors.New("the reference API server has not been started: it has no address yet")
	}
	const name = "conformance-reference"
	c := clientcmdapi.NewConfig()
	c.Clusters[name] = &clientcmdapi.Cluster{Server: url, CertificateAuthorityData: s.CA()}
	c.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: s.options.Token}
	c.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name, Namespace: "default"}
	c.CurrentContext = name
	return clientcmd.Write(*c)
}

// WriteKubeconfig writes the kubeconfig to a file that only its owner can read. The file appears complete or not at all.
func (s *Server) WriteKubeconfig(path string) error {
	data, err := s.Kubeconfig()
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // created with mode 0600
	if err != nil {
		return fmt.Errorf("write kubeconfig %s: %w", path, err)
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return fmt.Errorf("write kubeconfig %s: %w", path, err)
	}
	return nil
}
