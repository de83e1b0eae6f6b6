package main

import (
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// Machine is what a measurement depends on.
type Machine struct {
	Processor string `json:"processor"`
	Cores     int    `json:"cores"`
	// Memory is in GiB, rounded.
	Memory int    `json:"memory"`
	Kernel string `json:"kernel"`
	Go     string `json:"go"`
}

// thisMachine reads /proc; what is not there stays empty.
func thisMachine() Machine {
	m := Machine{Cores: runtime.NumCPU(), Go: runtime.Version(), Processor: runtime.GOARCH}
	if line := found("/proc/cpuinfo", `(?m)^model name\s*: (.*)$`); line != "" {
		m.Processor = line
	}
	if kib, err := strconv.Atoi(found("/proc/meminfo", `(?m)^MemTotal:\s*([0-9]+) kB$`)); err == nil {
		m.Memory = (kib + 1<<19) >> 20
	}
	m.Kernel = runtime.GOOS
	if release := found("/proc/sys/kernel/osrelease", `^([0-9]+\.[0-9]+)`); release != "" {
		m.Kernel = "Linux " + release
	}
	return m
}

// name is for a file: it tells machines apart by what they are, and does not tell whose they are.
func (m Machine) name() string {
	text := fmt.Sprintf("%s-%d-cores-%d-gib", m.Processor, m.Cores, m.Memory)
	return strings.Trim(regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(text), "-"), "-")
}

func (m Machine) String() string {
	return fmt.Sprintf("%s, %d cores, %d GiB of memory, %s, %s", m.Processor, m.Cores, m.Memory, m.Kernel, strings.Replace(m.Go, "go", "Go ", 1))
}

// found is the first group of the first match in a file; empty if there is none.
func found(path, pattern string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	match := regexp.MustCompile(pattern).FindSubmatch(text)
	if match == nil {
		return ""
	}
	return strings.TrimSpace(string(match[1]))
}

// processorTime is how long the processors of the machine have worked, in seconds since it started; 0 where /proc does not tell.
func processorTime() float64 {
	fields := strings.Fields(found("/proc/stat", `(?m)^cpu  (.*)$`))
	ticks := 0.0
	for i, field := range fields {
		if i == 3 || i == 4 || i > 6 { // idle, waiting for disks; and what is counted elsewhere
			continue
		}
		n, _ := strconv.ParseFloat(field, 64)
		ticks += n
	}
	return ticks / 100 // USER_HZ of Linux
}

// busyFor is how long busy looks.
const busyFor = 3 * time.Second

// busy is the share of the processors that works for others at the moment, from 0 to 1.
func busy() float64 {
	worked := processorTime()
	time.Sleep(busyFor)
	return (processorTime() - worked) / busyFor.Seconds() / float64(runtime.NumCPU())
}
