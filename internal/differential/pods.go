package differential

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

const podsPath = "/api/v1/namespaces/{namespace}/pods"

// mostPodSteps is how many changes a random story of Pods has at most. Both sides are compared after each of them.
const mostPodSteps = 14

// RandomPods makes a story of Pods and Services, of which controllers make EndpointSlices and Endpoints.
func RandomPods(r *rand.Rand) (s Story) {
	t := teller{r}
	s.Steps = append(s.Steps, t.selectingService("a"))
	for range 1 + t.IntN(mostPodSteps) {
		s.Steps = append(s.Steps, t.podStep()...)
	}
	return s
}

func (t teller) pod() string { return one(t, "p", "p", "q", "r") }

// podStep is a change of a Pod, or of what selects it.
func (t teller) podStep() []Request {
	pod, service := t.pod(), one(t, "a", "a", "b")
	servicePath := kinds[0].path + "/" + service
	patch := func(path string, body map[string]any) []Request {
		r := t.sent(Request{Request: "PATCH " + path}, body)
		r.Type = mergePatch
		return []Request{r}
	}
	switch n := t.IntN(100); {
	case n < 34:
		return []Request{t.newPod(pod), t.podStatus(pod)}
	case n < 52:
		return []Request{t.podStatus(pod)}
	case n < 56: // one that was ready ends: Kubernetes does not notice the end of one that was not
		ready := `{"status":{"phase":"Running","podIP":"10.1.0.7","podIPs":[{"ip":"10.1.0.7"}],"conditions":[{"type":"Ready","status":"True"}]}}`
		ended := fmt.Sprintf(`{"status":{"phase":%q,"conditions":[{"type":"Ready","status":"False"}]}}`, one(t, "Succeeded", "Failed"))
		path := podsPath + "/" + pod
		return []Request{
			{Request: "PATCH " + path + "/status", Type: mergePatch, Body: ready}, {Request: "PATCH " + path + "/status", Type: mergePatch, Body: ended},
			{Request: "DELETE " + path, Type: jsonType, Body: `{"gracePeriodSeconds":0}`},
		}
	case n < 60:
		return patch(podsPath+"/"+pod, map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": one[any](t, "x", "y", nil)}}})
	case n < 70:
		r := Request{Request: "DELETE " + podsPath + "/" + pod}
		if t.once(2) {
			r.Type, r.Body = jsonType, `{"gracePeriodSeconds":0}`
		}
		return []Request{r}
	case n < 77:
		return []Request{t.selectingService(service)}
	case n < 92:
		spec := one(t,
			map[string]any{"selector": map[string]any{"app": one(t, "x", "y")}},
			map[string]any{"publishNotReadyAddresses": one(t, true, false)},
			map[string]any{"ports": t.targetPorts()},
			map[string]any{"trafficDistribution": one[any](t, "PreferClose", "PreferSameNode", nil)},
			map[string]any{"ipFamilyPolicy": "RequireDualStack"},
		)
		return patch(servicePath, map[string]any{"spec": spec})
	case n < 95:
		return patch(servicePath, map[string]any{"metadata": map[string]any{"labels": map[string]any{"l": one[any](t, "v", "w", nil)}}})
	case n < 98:
		return t.handMade()
	}
	return []Request{{Request: "DELETE " + withQuery("/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices", url.Values{"labelSelector": {"kubernetes.io/service-name=" + service}})}}
}

func (t teller) newPod(name string) Request {
	ports := []any{}
	for _, p := range []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}, {Name: "metrics", ContainerPort: 9090}, {Name: "dns", ContainerPort: 53}} {
		if t.once(2) {
			ports = append(ports, map[string]any{"name": p.Name, "containerPort": int(p.ContainerPort) + t.IntN(2), "protocol": one(t, "TCP", "TCP", "UDP")})
		}
	}
	spec := map[string]any{
		"nodeName": one(t, "node-1", "node-1", "node-2", "node-3"), "containers": []any{map[string]any{"name": "c", "image": "none", "ports": ports}},
	}
	if t.once(4) {
		spec["hostname"] = "h-" + name
	}
	if t.once(4) {
		spec["subdomain"] = one(t, "a", "b")
	}
	if t.once(8) {
		spec["initContainers"] = []any{map[string]any{"name": "side", "image": "none", "restartPolicy": "Always", "ports": []any{map[string]any{"name": "side", "containerPort": 7070}}}}
	}
	return t.sent(Request{Request: "POST " + podsPath}, map[string]any{"metadata": map[string]any{"name": name, "labels": map[string]any{"app": one(t, "x", "x", "x", "y")}}, "spec": spec})
}

func (t teller) podStatus(name string) Request {
	status := map[string]any{"phase": one(t, "Running", "Running", "Running", "Pending", "Unknown")}
	status["conditions"] = []any{map[string]any{"type": "Ready", "status": one(t, "True", "True", "True", "False", "Unknown")}}
	if t.once(12) {
		status["conditions"] = nil
	}
	number := strings.Index("pqr", name) + 1 + 10*t.IntN(2)
	v4, v6 := fmt.Sprintf("10.1.0.%d", number), fmt.Sprintf("2001:db8::%d", number)
	of := func(ips ...string) {
		var all []any
		for _, ip := range ips {
			all = append(all, map[string]any{"ip": ip})
		}
		status["podIP"], status["podIPs"] = ips[0], all
	}
	switch t.IntN(10) {
	case 0:
		status["podIP"], status["podIPs"] = nil, nil
	case 1:
		of(v6)
	case 2, 3, 4:
		of(v4, v6)
	default:
		of(v4)
	}
	r := t.sent(Request{Request: "PATCH " + podsPath + "/" + name + "/status"}, map[string]any{"status": status})
	r.Type = mergePatch
	return r
}

func (t teller) targetPorts() []any {
	ports := []any{}
	for i := range 1 + t.IntN(2) {
		p := map[string]any{"name": fmt.Sprintf("p%d", i), "port": 80 + i, "targetPort": one[any](t, 8080, "http", "http", "metrics", "dns", "side", "none")}
		if t.once(4) {
			p["protocol"] = "UDP"
		}
		if t.once(6) {
			p["appProtocol"] = "http"
		}
		ports = append(ports, p)
	}
	return ports
}

func (t teller) selectingService(name string) Request {
	spec := map[string]any{"ports": t.targetPorts(), "selector": map[string]any{"app": one(t, "x", "x", "y")}}
	if t.once(4) {
		spec["clusterIP"] = "None"
		if t.once(3) {
			delete(spec, "ports")
		}
	}
	if t.once(5) {
		spec["publishNotReadyAddresses"] = true
	}
	if t.once(3) {
		spec["ipFamilyPolicy"] = one(t, "PreferDualStack", "RequireDualStack")
	} else if t.once(4) {
		spec["ipFamilies"] = []any{"IPv6"}
	}
	if t.once(4) {
		spec["trafficDistribution"] = one(t, "PreferClose", "PreferSameNode")
	}
	metadata := map[string]any{"name": name}
	if t.once(4) {
		metadata["labels"] = map[string]any{"l": one(t, "v", "w")}
	}
	return t.sent(Request{Request: "POST " + kinds[0].path}, map[string]any{"metadata": metadata, "spec": spec})
}

// handMade are Endpoints that somebody writes for a Service without a selector, which are mirrored.
func (t teller) handMade() []Request {
	subset := map[string]any{"addresses": []any{map[string]any{"ip": one(t, "10.1.9.1", "10.1.9.2", "2001:db8::9")}}, "ports": []any{map[string]any{"name": "p0", "port": one(t, 8080, 8081)}}}
	if t.once(3) {
		subset["notReadyAddresses"] = []any{map[string]any{"ip": "10.1.9.3", "hostname": "h", "nodeName": "node-1"}}
	}
	metadata := map[string]any{"name": "c"}
	if t.once(4) {
		metadata["labels"] = map[string]any{one(t, "l", "endpointslice.kubernetes.io/skip-mirror"): "true"}
	}
	write := t.sent(Request{Request: one(t, "POST "+kinds[2].path, "PUT "+kinds[2].path+"/c")}, map[string]any{"metadata": metadata, "subsets": []any{subset}})
	own := t.sent(Request{Request: "POST " + kinds[0].path}, map[string]any{"metadata": map[string]any{"name": "c"}, "spec": map[string]any{"ports": []any{map[string]any{"name": "p0", "port": 80}}}})
	if t.once(4) {
		return []Request{{Request: "DELETE " + kinds[2].path + "/c"}}
	}
	return []Request{own, write}
}
