package fault

import "github.com/service-conformance/conformance/framework/spec"

// What a dry run does with addresses and node ports.
var (
	DryRunReserves           = New("dry-run-reserves", "a dry run keeps what it allocates", spec.AllocDryRunCreateKeepsNothing, spec.AllocDryRunUpdateKeepsNothing)
	DryRunFrees              = New("dry-run-frees", "a dry-run update frees what the update would free", spec.AllocDryRunUpdateKeepsNothing)
	DryRunDeleteFrees        = New("dry-run-delete-frees", "a dry-run delete frees the addresses and node ports of the Service", spec.AllocDryRunDeleteKeepsAddress)
	DryRunOutOfRange         = New("dry-run-out-of-range-accepted", "a dry run accepts an address outside the range", spec.AllocDryRunOutOfRangeRefused)
	DryRunDuplicate          = New("dry-run-duplicate-accepted", "a dry run accepts an address in use", spec.AllocDryRunDuplicateRefused)
	DryRunNodePortTaken      = New("dry-run-node-port-in-use-accepted", "a dry run accepts a node port in use", spec.AllocDryRunNodePortInUseRefused)
	DryRunNodePortOutOfRange = New("dry-run-node-port-out-of-range-accepted", "a dry run accepts a node port outside the range", spec.AllocDryRunNodePortOutOfRangeRefused)
)
