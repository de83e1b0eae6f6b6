package candidate

import "sync"

// IdlePods are the pods that DataPlane.LendPod lends and no lease has, by their node. P is what a tier knows of a pod.
// The zero value is ready for use, and safe for concurrent use. The pod that was given back first is lent first. The
// longer a pod rests, the less do the kernels still remember of what it sent.
type IdlePods[P any] struct {
	mu   sync.Mutex
	idle map[string][]P
	made map[string]int
}

// Take takes a pod that is on the node and that nobody has. If there is none, number is that of a new one on this node, from 1.
func (i *IdlePods[P]) Take(node string) (pod P, number int, found bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.idle[node]) > 0 {
		pod = i.idle[node][0]
		i.idle[node] = i.idle[node][1:]
		return pod, 0, true
	}
	if i.made == nil {
		i.made = map[string]int{}
	}
	i.made[node]++
	return pod, i.made[node], false
}

// TakeAll takes all pods that nobody has.
func (i *IdlePods[P]) TakeAll() (pods []P) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, idle := range i.idle {
		pods = append(pods, idle...)
	}
	i.idle = nil
	return pods
}

// Return gives back a pod that Take found, or that was made because it found none.
func (i *IdlePods[P]) Return(node string, pod P) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.idle == nil {
		i.idle = map[string][]P{}
	}
	i.idle[node] = append(i.idle[node], pod)
}
