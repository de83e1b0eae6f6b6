//go:build linux

// Package network builds the network of a lab out of network namespaces: nodes on a bridge, pods behind their nodes, clients outside of
// the cluster. No namespace has a name: the kernel removes all of it with the process that holds it.
package network

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Namespace is a network namespace, held by a file descriptor. Its methods are safe for concurrent use.
type Namespace struct {
	handle netns.NsHandle
	links  *netlink.Handle
	cgroup *cgroup // that its threads and processes are in; nil is that of this process
}

// newNamespace makes a namespace with its loopback interface up and the sysctls set.
func newNamespace(sysctls ...map[string]string) (_ *Namespace, err error) {
	n := &Namespace{handle: netns.None()}
	defer func() {
		if err != nil {
			n.Close()
		}
	}()
	err = onThreadOf(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("make a network namespace: %w", err)
		}
		if n.handle, err = netns.Get(); err != nil {
			return err
		}
		return setSysctls(sysctls...)
	})
	if err != nil {
		return nil, err
	}
	if n.links, err = netlink.NewHandleAt(n.handle, unix.NETLINK_ROUTE); err != nil {
		return nil, fmt.Errorf("open netlink in a network namespace: %w", err)
	}
	return n, n.up("lo")
}

// setSysctls writes sysctls of the network namespace of this thread; those that this kernel does not have are left out.
func setSysctls(sets ...map[string]string) error {
	for _, set := range sets {
		for name, value := range set {
			err := os.WriteFile(filepath.Join("/proc/sys", name), []byte(value), 0)
			if err != nil && !os.IsNotExist(err) {
				return fmt.Errorf("set sysctl %s: %w", name, err)
			}
		}
	}
	return nil
}

// processNamespace is the namespace of every thread that nobody has locked.
var processNamespace = sync.OnceValues(netns.Get)

// onThreadOf runs f on a thread of its own in the namespace. The thread comes back to its old namespace by the other
// ways back, or ends.
func onThreadOf(f func() error, back ...func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		origin, err := processNamespace()
		if err != nil {
			done <- err
			return
		}
		err = f()
		lost := netns.Set(origin) != nil
		for _, b := range back {
			lost = b() != nil || lost
		}
		if !lost {
			runtime.UnlockOSThread() // else the runtime ends the thread with this goroutine
		}
		done <- err
	}()
	return <-done
}

// Do runs f on a thread inside of the namespace. Sockets that f opens and processes that it starts stay there.
func (n *Namespace) Do(f func() error) error {
	return onThreadOf(func() error {
		if err := netns.Set(n.handle); err != nil {
			return fmt.Errorf("enter a network namespace: %w", err)
		}
		if err := n.cgroup.enter(); err != nil {
			return err
		}
		return f()
	}, n.cgroup.leave)
}

// Enter moves the calling thread, which the caller has locked, into the namespace, and returns what brings it back.
func (n *Namespace) Enter() (leave func() error, err error) {
	origin, err := netns.Get()
	if err != nil {
		return nil, err
	}
	if err := netns.Set(n.handle); err != nil {
		origin.Close()
		return nil, fmt.Errorf("enter a network namespace: %w", err)
	}
	leave = func() error {
		defer origin.Close()
		return errors.Join(netns.Set(origin), n.cgroup.leave())
	}
	if err := n.cgroup.enter(); err != nil {
		return nil, errors.Join(err, leave())
	}
	return leave, nil
}

// Cgroup is the folder of the cgroup (version 2) that threads and processes in the namespace are in. It is empty where
// they are in that of this process.
func (n *Namespace) Cgroup() string {
	if n.cgroup == nil {
		return ""
	}
	return n.cgroup.path
}

// Descriptor is the file descriptor that holds the namespace.
func (n *Namespace) Descriptor() int { return int(n.handle) }

// Close lets go of the namespace. The kernel removes it when its last process and socket are gone.
func (n *Namespace) Close() {
	if n.links != nil {
		n.links.Close()
	}
	if n.handle.IsOpen() {
		n.handle.Close()
	}
}

func (n *Namespace) up(name string) error {
	l, err := n.links.LinkByName(name)
	if err != nil {
		return fmt.Errorf("interface %s: %w", name, err)
	}
	if err := n.links.LinkSetUp(l); err != nil {
		return fmt.Errorf("set interface %s up: %w", name, err)
	}
	return nil
}
