package agent

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"regexp"

	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/candidate"
)

// ConfigVariable is the environment variable that holds the Config of an agent, as JSON.
const ConfigVariable = "CONFORMANCE_AGENT"

// Config is what an agent is told when its pod is made.
type Config struct {
	// TokenDigest is that of the token that requests to the control server must carry in TokenHeader, but for those of
	// the kubelet. A user who may read Pods can read it, and cannot command an agent by it.
	TokenDigest string `json:"tokenDigest"`
	// Pod is the identity that the backends answer with.
	Pod candidate.PodName `json:"pod"`
	// Ports are what the pod answers on, in its network; none makes it a client only.
	Ports []candidate.PodPort `json:"ports,omitempty"`
	// Control is the TCP port of the control server, on all addresses of the pod.
	Control int `json:"control"`
	// Outside are, for an agent outside of the cluster, the source addresses of its clients by the node that is their gateway. The routes of the
	// machine see to it that what is sent from them goes to that node.
	Outside map[string][]netip.Addr `json:"outside,omitempty"`
	// Unready makes PathReadyz say 503 until it is told otherwise.
	Unready bool `json:"unready,omitempty"`
}

// TokenDigest is the digest of a token: its SHA-256 in hexadecimal digits, as `printf %s TOKEN | sha256sum` shows it.
func TokenDigest(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

var digests = regexp.MustCompile("^[0-9a-f]{64}$")

// ParseConfig reads the value of ConfigVariable. An error tells what is wrong with it.
func ParseConfig(text string) (Config, error) {
	if text == "" {
		return Config{}, errors.New("it is not set; this command is for the pods that a run starts, which have it")
	}
	var c Config
	if err := decode([]byte(text), &c); err != nil {
		return Config{}, err
	}
	return c, c.validate()
}

func (c *Config) validate() error {
	var problems []error
	problem := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if !digests.MatchString(c.TokenDigest) {
		problem("tokenDigest: the SHA-256 of a token is needed, 64 lower-case hexadecimal digits, or everybody in the cluster could command this pod")
	}
	if c.Pod.Namespace == "" || c.Pod.Name == "" {
		problem("pod: the namespace and the name of the pod are needed")
	}
	if !isPort(c.Control) {
		problem("control: %d is no port; name one from 1 to 65535", c.Control)
	}
	taken := map[candidate.PodPort]string{{Protocol: corev1.ProtocolTCP, Number: c.Control}: "control"}
	for i, p := range c.Ports {
		field := fmt.Sprintf("ports[%d]", i)
		switch p.Protocol {
		case corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP:
		default:
			problem("%s: protocol %q is none of TCP, UDP and SCTP", field, p.Protocol)
		}
		if !isPort(p.Number) {
			problem("%s: %d is no port; name one from 1 to 65535", field, p.Number)
		}
		key := candidate.PodPort{Protocol: p.Protocol, Number: p.Number}
		if other := taken[key]; other != "" {
			problem("%s: %d/%s is taken by %s", field, p.Number, p.Protocol, other)
		}
		taken[key] = field
	}
	return errors.Join(problems...)
}

func isPort(number int) bool { return number >= 1 && number <= 65535 }

// decode reads one JSON value and nothing beside it. A field that is not known is an error: the other side is of another version.
func decode(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("malformed JSON: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("malformed JSON: something follows the value")
	}
	return nil
}
