package fault

import "github.com/service-conformance/conformance/framework/spec"

// What only shows while several clients are at work. One request after the other is answered as it should be.
var (
	UpdateTakesLate = New("update-takes-late", "an update finds that the address which it names is free, and takes it a moment later without another look", spec.AllocHistoryExplained)
	FreedBeforeGone = New("freed-before-gone", "the addresses of a Service that is deleted are free a moment before it is gone", spec.AllocHistoryExplained)
	RefusalCached   = New("refusal-cached", "an API server that has found an address in use refuses it for a moment without another look",
		spec.AllocHistoryExplained, spec.AllocRecordShared)
	FullCached = New("full-cached", "an API server that has found no free address gives none for a moment", spec.AllocHistoryExplained)
)
