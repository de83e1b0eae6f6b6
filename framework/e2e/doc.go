// Package e2e is for tests that use sigs.k8s.io/e2e-framework. Features are the checks of the suites that a test imports, one feature for each requirement, for the
// Environment of a user. Kind and Command make the cluster of an Environment as tier kind and --cluster-command do.
//
// It is the only package that imports e2e-framework. The program does not import it.
package e2e
