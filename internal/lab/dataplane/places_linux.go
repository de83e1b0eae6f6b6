package dataplane

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// NamespaceInode identifies the namespace that a file descriptor holds for as long as it exists.
func NamespaceInode(fd int) (uint64, error) {
	var s unix.Stat_t
	if err := unix.Fstat(fd, &s); err != nil {
		return 0, fmt.Errorf("look at a namespace: %w", err)
	}
	return s.Ino, nil
}

// Namespaces opens what is to be entered, in that order: the users and the mounts of the lab's process, and the network of the place.
func (p *Place) Namespaces(pid int) (_ []*os.File, err error) {
	var opened []*os.File
	defer func() {
		if err != nil {
			for _, f := range opened {
				f.Close()
			}
		}
	}()
	proc := fmt.Sprintf("/proc/%d/", pid)
	paths := []string{proc + "ns/mnt", proc + "fd/" + strconv.Itoa(p.Descriptor)}
	own, err := os.Readlink("/proc/self/ns/user")
	if err != nil {
		return nil, err
	}
	if theirs, err := os.Readlink(proc + "ns/user"); err != nil {
		return nil, err
	} else if theirs != own { // nobody may enter again where he is
		paths = append([]string{proc + "ns/user"}, paths...)
	}
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		opened = append(opened, f)
	}
	inode, err := NamespaceInode(int(opened[len(opened)-1].Fd()))
	if err == nil && inode != p.Inode {
		err = fmt.Errorf("%s has just gone", p.Name)
	}
	return opened, err
}
