// Package traffic sends and answers real packets: servers that are the backends in pods, and a prober that is the clients. It runs where
// its sockets are: in the network namespaces of a lab, or in a pod.
//
// A Server answers on the ports of a pod with the pod's identity and with the client address that it saw. On TCP and
// SCTP a request is a line, and any number may follow each other on a connection. A line that begins with "GET " begins
// an HTTP request instead. On UDP a request is a datagram. Each is answered with one line of JSON, which repeats the
// request. So an answer that comes too late is never taken for that of another shot.
//
// A Prober sends the shots of candidate.Probe and classifies what they meet as candidate.Result says:
//
//   - Answered is a complete answer of a Server, or one of anybody else, which names no pod; with Path one of HTTP, whoever gives it.
//   - Refused is ECONNREFUSED: a TCP reset in answer to SYN, or ICMP port unreachable. So is the end of a UDP socket that something on the
//     machine aborts (ECONNABORTED, then EDESTADDRREQ): a balancer that works at sockets tells so that an endpoint is gone.
//   - Unreachable is every other error that ICMP, a route or a filter makes of a destination.
//   - Dropped is silence for the timeout, be it in answer to the first packet or on an established connection. Progress (a connection is
//     established, a part of an answer has come) begins it anew. The socket is looked at once more after the timeout, so that a prober
//     that did not run in the meantime does not take its own sleep for silence.
//     A datagram that a filter of the sender's machine takes is silence, too.
//   - Reset is the end of an established connection, also an orderly one, before the answer was complete.
//   - Broken is everything else: what the prober's machine lacks, a source port that is taken, a cancelled context, an answer
//     without end.
//
// Ask puts a question to a DNS server.
//
// A shot is a datagram, a single one unless the probe says otherwise, or a connection of which the kernel repeats what is lost.
//
// Sockets exist on Linux only; elsewhere Serve fails and every outcome is Broken.
package traffic

// Namespace runs open on an operating-system thread in the network namespace where sockets shall be. It returns the
// error of open, or why it could not be run. Open only creates sockets, it does not wait for anybody. A nil Namespace
// is that of the process.
type Namespace func(open func() error) error

func (n Namespace) do(open func() error) error {
	if n == nil {
		return open()
	}
	return n(open)
}
