package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/report"
	"github.com/service-conformance/conformance/framework/report/bundle"
	"github.com/service-conformance/conformance/framework/spec"
)

// notForCertification are the flags of run that would leave something out, excuse something or change what is judged.
var notForCertification = []string{
	"suite", "focus", "skip", "shard", "fail-fast", "max-wait", "feature", "profile", "expectations", "print-report", "sonobuoy", "fault", "without", "report-dir", "strict", "attach", "reuse",
}

func newCertify() *cobra.Command {
	f := &runFlags{}
	out, sign := "", ""
	cmd := &cobra.Command{
		Use:   "certify --implementation FILE",
		Short: "judge all that an implementation claims, and write the bundle that its vendor submits",
		Long: `Judge all that an implementation file claims, and write a bundle, as a folder and as .tar.gz. The bundle holds the report in all its formats,
the implementation file, logs, versions and SHA-256 sums. No check can be left out, slow ones neither. Only published lists excuse a failure. A bundle certifies a profile only if every MUST of it was judged. The file must name organization, project, version, url and contact.
` + "`conformance report verify`" + ` verifies a bundle. Exit codes are those of run.`,
		Example: `  conformance certify --implementation implementation.yaml --tier kind --out example-proxy-1.2.0
  conformance certify --implementation implementation.yaml --tier lab --proxy-command 'example-proxy --kubeconfig={kubeconfig}'`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ending.withReader()
			return f.certify(cmd.Context(), cmd.OutOrStdout(), out, sign)
		},
	}
	f.given = cmd.Flags()
	f.tierFlags.register(cmd.Flags())
	f.registerSelection(cmd.Flags())
	cmd.Flags().StringVar(&out, "out", "conformance-bundle", "folder of the bundle, which must not exist; the archive is written beside it")
	cmd.Flags().StringVar(&sign, "sign", "", "secret key of minisign to sign the bundle with; "+passwordVariable+" is its password")
	for _, name := range notForCertification {
		if flag := cmd.Flags().Lookup(name); flag != nil {
			flag.Hidden = true
		}
	}
	return cmd
}

func (f *runFlags) certify(ctx context.Context, out io.Writer, dir, sign string) error {
	var refused error
	f.given.Visit(func(flag *pflag.Flag) {
		for _, name := range notForCertification {
			if flag.Name == name {
				refused = usage("--%s is not for a certification, which judges all that is claimed, by published lists alone", name)
			}
		}
	})
	if refused != nil {
		return refused
	}
	if f.declared == "" {
		return usage("name the implementation file with --implementation (fixtures/implementation.example.yaml)")
	}
	says, err := readImplementation(f.declared)
	switch {
	case err != nil:
		return usage("%w", err)
	case says.Submitter == nil:
		return usage("%s: organization, project, version, url and contact say who submits: add them", f.declared)
	}
	if _, err := os.Stat(dir); err == nil {
		return usage("--out %s exists: a bundle is written into a folder of its own", dir)
	}
	var key *bundle.Key
	if sign != "" {
		if key, err = bundle.ReadKey(sign, passwordOfKey); err != nil {
			return usage("--sign: %w", err)
		}
	}
	claim, err := os.ReadFile(f.declared)
	if err != nil {
		return usage("%w", err)
	}
	f.reportDir, f.Slow = dir, true // a MUST that only a slow check judges is a part of its profile
	program, err := digestOfProgram()
	if err != nil {
		return harness("%w", err)
	}
	var log strings.Builder
	judging := f.runOrSay(ctx, io.MultiWriter(out, &log))
	if _, err := os.Stat(filepath.Join(dir, report.JSONFile)); err != nil || bundle.Is(dir) {
		return judging // nothing was judged, and the error says why; or the process in namespaces of its own has made the bundle
	}
	for name, data := range map[string][]byte{bundle.ImplementationFile: claim, bundle.LogFile: []byte(log.String())} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return harness("%w", err)
		}
	}
	archive, err := bundle.Seal(dir, bundle.Manifest{
		Created: time.Now().UTC().Truncate(time.Second), Suite: check.BuildVersion(), Program: program, Catalogue: spec.Digest(), Reproduce: reproduce(os.Args[1:]),
	}, key)
	if err != nil {
		return harness("%w", err)
	}
	fmt.Fprintf(out, "bundle: %s\n", archive)
	if judging != nil {
		return judging
	}
	return covers(out, dir)
}

// covers says which profiles a bundle does not certify, for a MUST of them was not judged.
func covers(out io.Writer, dir string) error {
	r, err := report.Open(dir)
	if err != nil {
		return harness("%w", err)
	}
	uncovered := bundle.Uncovered(r)
	if len(uncovered) == 0 {
		return nil
	}
	for _, line := range uncovered {
		fmt.Fprintf(out, "not certified: %s\n", line)
	}
	fmt.Fprintln(out, "judge what is missing, or claim other profiles in the implementation file; `conformance report verify` refuses the bundle as it is")
	return &exitError{code: report.ExitUnknown}
}

// passwordVariable is the environment variable with the password of the key of --sign.
const passwordVariable = "CONFORMANCE_SIGN_PASSWORD"

func passwordOfKey() (string, error) {
	if password, there := os.LookupEnv(passwordVariable); there {
		return password, nil
	}
	return "", fmt.Errorf("the key is encrypted: put its password into %s", passwordVariable)
}

// reproduce is the command line.
func reproduce(arguments []string) string {
	words := []string{"conformance"}
	for _, a := range withoutKey(arguments) {
		words = append(words, quoted(a))
	}
	return strings.Join(words, " ")
}

// withoutKey are arguments without the key of --sign: where a vendor keeps it is nobody's business.
func withoutKey(arguments []string) (rest []string) {
	for i := 0; i < len(arguments); i++ {
		switch a := arguments[i]; {
		case a == "--sign":
			i++
		case !strings.HasPrefix(a, "--sign="):
			rest = append(rest, a)
		}
	}
	return rest
}

// digestOfProgram is the SHA-256 digest of this program's file.
func digestOfProgram() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	file, err := os.Open(self)
	if err != nil {
		return "", err
	}
	defer file.Close()
	h := sha256.New()
	if _, err := io.Copy(h, file); err != nil {
		return "", err
	}
	return fmt.Sprintf("sha256:%x", h.Sum(nil)), nil
}
