package check

import (
	"slices"
	"time"

	"github.com/service-conformance/conformance/framework/candidate"
)

// cached finds out whether a cache answers, such as NodeLocal DNSCache: it says the same again, with less time to keep it. A server that makes its answers gives each
// the whole time. What a cache has may be as old as the TTL says, which is no fault of the DNS.
type cached struct {
	lookups []Lookup
	last    []candidate.Resolution // that was not as demanded
	longest int                    // the TTL of what a cache said, in seconds
	used    bool
}

// look takes note of answers.
func (c *cached) look(said []candidate.Resolution) {
	for i, l := range c.lookups {
		if l.Want.Met(l.Question, said[i]) {
			continue
		}
		before := c.last[i]
		if said[i].TTL > 0 && said[i].TTL < before.TTL && said[i].Said == before.Said && slices.Equal(said[i].Records, before.Records) {
			c.longest = max(c.longest, before.TTL)
		}
		c.last[i] = said[i]
	}
}

// longestKept bounds the time for which a cache is waited for: kubeadm has CoreDNS say 30 seconds.
const longestKept = 30 * time.Second

// expire is the time after which what a cache has kept is gone. It is 0 where none answers, and when it was waited for.
func (c *cached) expire() time.Duration {
	if c.used {
		return 0
	}
	c.used = true
	return min(longestKept, time.Duration(c.longest)*time.Second)
}
