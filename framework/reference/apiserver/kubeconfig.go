package apiserver

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/service-conformance/conformance/internal/wholefile"
)

// contextName is the name of all that a kubeconfig of the reference holds.
const contextName = "conformance-reference"

// Kubeconfig returns a kubeconfig that reaches the server with full rights. The server must have been started.
func (s *Server) Kubeconfig() ([]byte, error) {
	url := s.URL()
	if url == "" {
		return nil, errors.New("the reference API server has not been started: it has no address yet")
	}
	const name = contextName
	c := clientcmdapi.NewConfig()
	c.Clusters[name] = &clientcmdapi.Cluster{Server: url, CertificateAuthorityData: s.CA()}
	c.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: s.options.Token}
	c.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name, Namespace: "default"}
	c.CurrentContext = name
	return clientcmd.Write(*c)
}

// MayWriteKubeconfig returns an error if there is a file of this name that WriteKubeconfig has not written.
func MayWriteKubeconfig(path string) error {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(filepath.Dir(path)); err != nil {
			return fmt.Errorf("kubeconfig %s: its folder: %w", path, err)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("kubeconfig %s: %w", path, err)
	}
	c, err := clientcmd.Load(data)
	if err != nil || len(c.Contexts) != 1 || c.Contexts[contextName] == nil {
		return fmt.Errorf("kubeconfig %s: there is such a file already, which leads to something else, and it is left alone: name another", path)
	}
	return nil
}

// WriteKubeconfig writes the kubeconfig to a file that only its owner can read, see MayWriteKubeconfig. The file appears complete or not at all.
func (s *Server) WriteKubeconfig(path string) error {
	data, err := s.Kubeconfig()
	if err == nil {
		err = MayWriteKubeconfig(path)
	}
	if err != nil {
		return err
	}
	if err := wholefile.Write(path, data, 0o600); err != nil {
		return fmt.Errorf("write kubeconfig %s: %w", path, err)
	}
	return nil
}
