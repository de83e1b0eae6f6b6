package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/service-conformance/conformance/internal/lab/download"
	"github.com/service-conformance/conformance/internal/lab/programs"
)

func newLabFetch() *cobra.Command {
	var o programs.FetchOptions
	var mirrors []string
	var sums string
	cmd := &cobra.Command{
		Use:   "fetch",
		Short: "download the released programs of Kubernetes, etcd and CoreDNS into the cache, instead of a build",
		Long: `Download the released programs of Kubernetes (from dl.k8s.io), etcd and CoreDNS (from GitHub) into the cache, where "run --tier lab" and "lab up" find them.

Every file is verified by its SHA-256 checksum before anything is put into the cache. An interrupted download continues with the next call. The command
honours the variables HTTPS_PROXY and NO_PROXY. There is no release of the service controller, which makes load balancers. "lab build" builds it with Go.
Without it, checks of what makes load balancers are not judged.`,
		Example: `  conformance lab fetch && conformance run --tier lab
  conformance lab fetch --kubernetes-version v1.36.3
  conformance lab fetch --from https://mirror.example/k8s
  conformance lab fetch --from dl.k8s.io=https://mirror.example/k8s --from github.com=https://mirror.example/github`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if o.Sources, err = programs.ParseSources(mirrors); err != nil {
				return usage("--from: %w", err)
			}
			if sums != "" {
				text, err := os.ReadFile(sums)
				if err != nil {
					return usage("read checksums: %w", err)
				}
				if o.Sums, err = download.ParseSums(string(text), ""); err != nil {
					return usage("--sha256-file %s: %w", sums, err)
				}
			}
			out := cmd.OutOrStdout()
			shown := &fetchProgress{out: out, terminal: isTerminal(out), start: time.Now()}
			o.Say, o.Progress = shown.say, shown.show
			got, err := programs.Fetch(cmd.Context(), o)
			shown.end()
			if err != nil {
				if e := interrupted(cmd.Context(), err); e != nil {
					return &exitError{code: 2, err: errors.New("interrupted: what has come until then is kept, and the next call continues")}
				}
				return usage("%w", err)
			}
			describeFetched(out, got)
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Version, "kubernetes-version", programs.DefaultVersion, "Kubernetes version")
	flags.StringVar(&o.EtcdVersion, "etcd-version", "", "etcd version (default: the one that fits the Kubernetes version)")
	flags.StringArrayVar(&mirrors, "from", nil, "address of a mirror of dl.k8s.io and github.com, with the same paths; HOST=URL is a mirror of one of them")
	flags.StringVar(&sums, "sha256-file", "", "file with the checksums of all files, as sha256sum writes it (default: those that the projects publish)")
	return cmd
}

// describeFetched says what is there now, and what is not.
func describeFetched(out io.Writer, got *programs.Fetched) {
	if len(got.New) == 0 {
		fmt.Fprintln(out, "nothing to fetch: all is there already")
	}
	fmt.Fprintf(out, "Kubernetes %s, etcd %s: %s\n", got.Version, got.EtcdVersion, got.Dir)
	for _, c := range slices.Sorted(maps.Keys(got.Lacking)) {
		fmt.Fprintf(out, "without %s: %s; checks that need it are not judged, unless `conformance lab build` builds it with Go\n", c, got.Lacking[c])
	}
}

// fetchHint tells, before programs are built, how to be spared that.
func fetchHint(out io.Writer) func() {
	return func() {
		if runtime.GOOS == "linux" {
			fmt.Fprintln(out, "building the programs of the lab takes minutes, once; where the internet is reached, `conformance lab fetch` downloads released ones instead")
		}
	}
}

// fetchProgress shows downloads: one line drawn anew on a terminal, a line for each quarter in a pipe.
type fetchProgress struct {
	out      io.Writer
	terminal bool
	start    time.Time
	drawn    bool
	quarters int64 // that were told
}

func (p *fetchProgress) say(line string) {
	p.end()
	fmt.Fprintln(p.out, line)
}

func (p *fetchProgress) show(done, total int64) {
	text := "fetched " + download.Size(done)
	if total > 0 {
		text += fmt.Sprintf(" of %s (%d %%)", download.Size(total), done*100/total)
	}
	switch {
	case p.terminal:
		fmt.Fprintf(p.out, "\r\x1b[K%s, %.0f s", text, time.Since(p.start).Seconds())
		p.drawn = true
	case total > 0 && done*4/total > p.quarters:
		p.quarters = done * 4 / total
		fmt.Fprintln(p.out, text)
	}
}

// end takes the drawn line away.
func (p *fetchProgress) end() {
	if p.drawn {
		fmt.Fprint(p.out, "\r\x1b[K")
		p.drawn = false
	}
}
