package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/report"
	"github.com/service-conformance/conformance/framework/report/bundle"
	"github.com/service-conformance/conformance/framework/runner"
	"github.com/service-conformance/conformance/framework/spec"
)

func newReportVerify() *cobra.Command {
	against, public := "", ""
	cmd := &cobra.Command{
		Use:   "verify BUNDLE...",
		Short: "verify bundles that `conformance certify` has made: sums, schema, verdicts, completeness",
		Long: `Verify bundles that ` + "`conformance certify`" + ` has made, as folders or .tar.gz. Every file must have its digest, and the report must follow its schema. Each verdict
must follow from its check, and the summary from the verdicts. No claimed requirement may be left out. The catalogue must be that of this program or a
published one. One line tells each finding. A note tells what only the program that made the bundle can verify.

Exit codes: 0 the bundle is sound, whatever the verdict on the implementation; 1 there are findings.`,
		Example: `  conformance report verify example-proxy-1.2.0.tar.gz
  conformance report verify submitted/ --against repeated/`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage("name a bundle: a folder, or a .tar.gz")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			out := cmd.OutOrStdout()
			suite, err := suiteOfProgram()
			if err != nil {
				return harness("%w", err)
			}
			var key *bundle.PublicKey
			if public != "" {
				if key, err = bundle.ReadPublicKey(public); err != nil {
					return usage("--key: %w", err)
				}
			}
			var other *report.Report
			if against != "" {
				files, err := bundle.Open(against)
				if err != nil {
					return usage("--against: %w", err)
				}
				r, findings, _ := bundle.Verify(files, suite)
				if len(findings) > 0 {
					return usage("--against %s: %s", against, findings[0])
				}
				other = r
			}
			all := 0
			for _, name := range args {
				files, err := bundle.Open(name)
				if err != nil {
					return usage("%w", err)
				}
				r, findings, notes := bundle.Verify(files, suite)
				if key != nil {
					if finding := files.VerifySignature(key); finding != "" {
						findings = append(findings, finding)
					}
				} else if _, signed := files[bundle.SignatureFile]; signed {
					notes = append(notes, "it is signed: verify the signature with --key")
				}
				if other != nil && r != nil {
					for _, difference := range bundle.Compare(r, other) {
						findings = append(findings, "differs from "+against+": "+difference)
					}
				}
				for _, finding := range findings {
					fmt.Fprintf(out, "%s: %s\n", name, finding)
				}
				for _, note := range notes {
					fmt.Fprintf(out, "%s: note: %s\n", name, note)
				}
				if all += len(findings); len(findings) == 0 {
					fmt.Fprintf(out, "%s: sound; %s: %s\n", name, r.Title(), r.VerdictLine())
				}
			}
			if all > 0 {
				return &exitError{code: report.ExitNonConformant}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&against, "against", "", "bundle of another run of the same claim, which must have found the same")
	cmd.Flags().StringVar(&public, "key", "", "public key of minisign that the bundles must be signed with")
	return cmd
}

// suiteOfProgram is what bundles are verified by.
func suiteOfProgram() (bundle.Suite, error) {
	program, err := digestOfProgram()
	return bundle.Suite{
		Program: program,
		ReadClaim: func(data []byte) (bundle.Claim, error) {
			i, err := parseImplementation(bundle.ImplementationFile, data)
			if err != nil {
				return bundle.Claim{}, err
			}
			return i.claim(), nil
		},
		Claimed: func(c bundle.Claim) map[spec.ID]bool {
			claims := runner.Selection{Features: c.Features, ClaimedSuites: c.Suites}
			for _, p := range c.Profiles {
				claims.Profiles = append(claims.Profiles, spec.Profile(p))
			}
			return claims.Claimed(check.Declarations())
		},
		Checks: func(s *report.Selection) (names []string) {
			runner.Plan(runner.Selection{Slow: s.Slow, Features: s.Features, Profiles: s.Profiles, ClaimedSuites: s.ClaimedSuites, ServiceCIDRs: s.ServiceCIDRs})
			for _, d := range check.Declarations() {
				if d.Runs > 0 {
					names = append(names, d.Name)
				}
			}
			return names
		},
	}, err
}
