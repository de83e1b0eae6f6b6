package remote

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/netip"
	"time"

	"github.com/service-conformance/conformance/framework/candidate"
)

// arguments are those of any method of a data plane.
type arguments struct {
	Pod       candidate.Pod                `json:"pod,omitzero"`
	Name      candidate.PodName            `json:"name,omitzero"`
	Ready     bool                         `json:"ready,omitempty"`
	Probes    []candidate.Probe            `json:"probes,omitempty"`
	Questions []candidate.Question         `json:"questions,omitempty"`
	Pass      time.Duration                `json:"pass,omitempty"`
	To        netip.AddrPort               `json:"to,omitzero"`
	Node      candidate.Node               `json:"node,omitzero"`
	Proxy     candidate.ProxyConfiguration `json:"proxy,omitzero"`
	What      candidate.Interference       `json:"what,omitempty"`
}

// results are those of any method of a data plane.
type results struct {
	Pod         candidate.Pod               `json:"pod,omitzero"`
	Outcomes    [][]candidate.Outcome       `json:"outcomes,omitempty"`
	Resolutions []candidate.Resolution      `json:"resolutions,omitempty"`
	Text        string                      `json:"text,omitempty"`
	Environment []string                    `json:"environment,omitempty"`
	Node        candidate.Node              `json:"node,omitzero"`
	State       candidate.ProxyState        `json:"state,omitzero"`
	Unavailable *candidate.UnavailableError `json:"unavailable,omitempty"`
	Error       string                      `json:"error,omitempty"`
}

// methods are those of a data plane, by name: the last part of the path that they are called at.
var methods = map[string]func(context.Context, candidate.DataPlane, *arguments, *results) error{
	"start-pod": func(ctx context.Context, p candidate.DataPlane, a *arguments, r *results) (err error) {
		r.Pod, err = p.StartPod(ctx, a.Pod)
		return err
	},
	"lend-pod": func(ctx context.Context, p candidate.DataPlane, a *arguments, r *results) (err error) {
		r.Pod, err = p.LendPod(ctx, a.Node.Name, a.Pod.Ports)
		return err
	},
	"set-ready": func(ctx context.Context, p candidate.DataPlane, a *arguments, _ *results) error {
		return p.SetReady(ctx, a.Name, a.Ready)
	},
	"answer-readiness": func(ctx context.Context, p candidate.DataPlane, a *arguments, _ *results) error {
		return p.AnswerReadiness(ctx, a.Name, a.Ready)
	},
	"environment": func(ctx context.Context, p candidate.DataPlane, a *arguments, r *results) (err error) {
		r.Environment, err = p.Environment(ctx, a.Name)
		return err
	},
	"terminate": func(ctx context.Context, p candidate.DataPlane, a *arguments, _ *results) error {
		return p.Terminate(ctx, a.Name)
	},
	"kill": func(ctx context.Context, p candidate.DataPlane, a *arguments, _ *results) error {
		return p.Kill(ctx, a.Name)
	},
	"remove": func(ctx context.Context, p candidate.DataPlane, a *arguments, _ *results) error {
		return p.Remove(ctx, a.Name)
	},
	"send": func(ctx context.Context, p candidate.DataPlane, a *arguments, r *results) (err error) {
		r.Outcomes, err = p.Send(ctx, a.Probes)
		return err
	},
	"resolve": func(ctx context.Context, p candidate.DataPlane, a *arguments, r *results) (err error) {
		r.Resolutions, err = p.Resolve(ctx, a.Questions)
		return err
	},
	"pass": func(ctx context.Context, p candidate.DataPlane, a *arguments, _ *results) error {
		return p.Pass(ctx, a.Pass)
	},
	"diagnose": func(ctx context.Context, p candidate.DataPlane, a *arguments, r *results) (err error) {
		r.Text, err = p.Diagnose(ctx, a.To)
		return err
	},
	"add-node": ofOwnNodes(func(ctx context.Context, o candidate.NodeOwner, a *arguments, r *results) (err error) {
		r.Node, err = o.AddNode(ctx, a.Node, a.Proxy)
		return err
	}),
	"start-proxy": ofOwnNodes(func(ctx context.Context, o candidate.NodeOwner, a *arguments, _ *results) error {
		return o.StartProxy(ctx, a.Node.Name, a.Proxy)
	}),
	"stop-proxy": ofOwnNodes(func(ctx context.Context, o candidate.NodeOwner, a *arguments, _ *results) error {
		return o.StopProxy(ctx, a.Node.Name)
	}),
	"proxy-state": ofOwnNodes(func(ctx context.Context, o candidate.NodeOwner, a *arguments, r *results) (err error) {
		r.State, err = o.ProxyState(ctx, a.Node.Name)
		return err
	}),
	"stop-controllers":  ofControllers(func(ctx context.Context, o candidate.ControllerOwner) error { return o.StopControllers(ctx) }),
	"start-controllers": ofControllers(func(ctx context.Context, o candidate.ControllerOwner) error { return o.StartControllers(ctx) }),
	"interfere": ofOwnNodes(func(ctx context.Context, o candidate.NodeOwner, a *arguments, _ *results) error {
		return o.Interfere(ctx, a.Node.Name, a.What)
	}),
}

// ofOwnNodes is a method that not every data plane has.
func ofOwnNodes(call func(context.Context, candidate.NodeOwner, *arguments, *results) error) func(context.Context, candidate.DataPlane, *arguments, *results) error {
	return func(ctx context.Context, p candidate.DataPlane, a *arguments, r *results) error {
		o, err := candidate.OwnNodes(p)
		if err != nil {
			return err
		}
		return call(ctx, o, a, r)
	}
}

// ofControllers is a method that not every data plane has.
func ofControllers(call func(context.Context, candidate.ControllerOwner) error) func(context.Context, candidate.DataPlane, *arguments, *results) error {
	return func(ctx context.Context, p candidate.DataPlane, _ *arguments, _ *results) error {
		o, err := candidate.OwnControllers(p)
		if err != nil {
			return err
		}
		return call(ctx, o)
	}
}

// serveDataPlane calls a method of a leased data plane.
func (s *Server) serveDataPlane(w http.ResponseWriter, r *http.Request) {
	plane, ok := s.take(r.PathValue("id"), false).(candidate.DataPlane)
	method := methods[r.PathValue("method")]
	if !ok || method == nil {
		http.Error(w, "no such lease or method", http.StatusNotFound)
		return
	}
	var in arguments
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var out results
	switch err := method(r.Context(), plane, &in, &out); {
	case candidate.IsUnavailable(err):
		out = results{Unavailable: candidate.AsUnavailable(err)}
	case err != nil:
		out = results{Error: err.Error()}
	}
	answer(w, out)
}

// dataPlane is a lease of a data plane that lives in another process.
type dataPlane struct{ leased }

var _ candidate.DataPlane = (*dataPlane)(nil)

// DataPlane implements candidate.Candidate.
func (c *Client) DataPlane(ctx context.Context, request candidate.DataPlaneRequest) (candidate.DataPlane, error) {
	d := &dataPlane{leased{client: c}}
	if err := d.take(ctx, "/dataplanes", request); err != nil {
		return nil, err
	}
	return d, nil
}

// LentNamespace implements candidate.NamespaceLender.
func (d *dataPlane) LentNamespace() string { return d.leaseAnswer.Namespace }

func (d *dataPlane) Nodes() []candidate.Node         { return d.leaseAnswer.Nodes }
func (d *dataPlane) ExternalAddresses() []netip.Addr { return d.leaseAnswer.ExternalAddresses }

func (d *dataPlane) do(ctx context.Context, method string, in arguments) (results, error) {
	var out results
	if err := d.client.call(ctx, http.MethodPost, "/leases/"+d.ID+"/"+method, in, &out); err != nil {
		return results{}, err
	}
	switch {
	case out.Unavailable != nil:
		return results{}, out.Unavailable
	case out.Error != "":
		return results{}, errors.New(out.Error)
	}
	return out, nil
}

func (d *dataPlane) StartPod(ctx context.Context, pod candidate.Pod) (candidate.Pod, error) {
	r, err := d.do(ctx, "start-pod", arguments{Pod: pod})
	return r.Pod, err
}

func (d *dataPlane) LendPod(ctx context.Context, node string, ports []candidate.PodPort) (candidate.Pod, error) {
	r, err := d.do(ctx, "lend-pod", arguments{Node: candidate.Node{Name: node}, Pod: candidate.Pod{Ports: ports}})
	return r.Pod, err
}

func (d *dataPlane) SetReady(ctx context.Context, pod candidate.PodName, ready bool) error {
	_, err := d.do(ctx, "set-ready", arguments{Name: pod, Ready: ready})
	return err
}

func (d *dataPlane) AnswerReadiness(ctx context.Context, pod candidate.PodName, ready bool) error {
	_, err := d.do(ctx, "answer-readiness", arguments{Name: pod, Ready: ready})
	return err
}

func (d *dataPlane) Environment(ctx context.Context, pod candidate.PodName) ([]string, error) {
	r, err := d.do(ctx, "environment", arguments{Name: pod})
	return r.Environment, err
}

func (d *dataPlane) Terminate(ctx context.Context, pod candidate.PodName) error {
	_, err := d.do(ctx, "terminate", arguments{Name: pod})
	return err
}

func (d *dataPlane) Kill(ctx context.Context, pod candidate.PodName) error {
	_, err := d.do(ctx, "kill", arguments{Name: pod})
	return err
}

func (d *dataPlane) Remove(ctx context.Context, pod candidate.PodName) error {
	_, err := d.do(ctx, "remove", arguments{Name: pod})
	return err
}

func (d *dataPlane) Send(ctx context.Context, probes []candidate.Probe) ([][]candidate.Outcome, error) {
	r, err := d.do(ctx, "send", arguments{Probes: probes})
	return r.Outcomes, err
}

func (d *dataPlane) Resolve(ctx context.Context, questions []candidate.Question) ([]candidate.Resolution, error) {
	r, err := d.do(ctx, "resolve", arguments{Questions: questions})
	return r.Resolutions, err
}

func (d *dataPlane) Pass(ctx context.Context, t time.Duration) error {
	_, err := d.do(ctx, "pass", arguments{Pass: t})
	return err
}

func (d *dataPlane) Diagnose(ctx context.Context, to netip.AddrPort) (string, error) {
	r, err := d.do(ctx, "diagnose", arguments{To: to})
	return r.Text, err
}

func (d *dataPlane) AddNode(ctx context.Context, node candidate.Node, proxy candidate.ProxyConfiguration) (candidate.Node, error) {
	r, err := d.do(ctx, "add-node", arguments{Node: node, Proxy: proxy})
	return r.Node, err
}

func (d *dataPlane) StartProxy(ctx context.Context, node string, proxy candidate.ProxyConfiguration) error {
	_, err := d.do(ctx, "start-proxy", arguments{Node: candidate.Node{Name: node}, Proxy: proxy})
	return err
}

func (d *dataPlane) StopProxy(ctx context.Context, node string) error {
	_, err := d.do(ctx, "stop-proxy", arguments{Node: candidate.Node{Name: node}})
	return err
}

func (d *dataPlane) ProxyState(ctx context.Context, node string) (candidate.ProxyState, error) {
	r, err := d.do(ctx, "proxy-state", arguments{Node: candidate.Node{Name: node}})
	return r.State, err
}

func (d *dataPlane) StopControllers(ctx context.Context) error {
	_, err := d.do(ctx, "stop-controllers", arguments{})
	return err
}

func (d *dataPlane) StartControllers(ctx context.Context) error {
	_, err := d.do(ctx, "start-controllers", arguments{})
	return err
}

func (d *dataPlane) Interfere(ctx context.Context, node string, what candidate.Interference) error {
	_, err := d.do(ctx, "interfere", arguments{Node: candidate.Node{Name: node}, What: what})
	return err
}
