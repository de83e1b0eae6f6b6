package fault

import "github.com/service-conformance/conformance/framework/spec"

// What only shows while several clients are at work. One request after the other is answered as it should be.
var (
	UpdateTakesLate = New("update-takes-late", "an update finds that the address which it names is free, and takes it a moment later without another look", spec.AllocHistoryExplained)
	FreedBeforeGone = New("freed-before-gone", "the addresses and node ports of a Service that is deleted are free a moment before it is gone",
		spec.AllocHistoryExplained, spec.AllocNodePortHistoryExplained)
	UpdateFreesEarly = New("update-frees-early", "the addresses and node ports that an update gives back are free a moment before it is stored", spec.AllocUpdateFreesWhenStored)
	CutUpdateKeeps   = New("cut-update-keeps", "an update whose client has gone before it is stored keeps what it was given",
		spec.AllocCutUpdateLeaksNothing)
	RefusalCached = New("refusal-cached", "an API server that has found an address in use refuses it for a moment without another look",
		spec.AllocHistoryExplained, spec.AllocRecordShared)
	FullCached                = New("full-cached", "an API server that has found no free address gives none for a moment", spec.AllocHistoryExplained)
	AddressFreedTwice         = New("address-freed-twice", "an update gives an address back, and once more a moment later, whoever has it by then", spec.AllocUpdateFreesOwn)
	DroppedNodePortFreedTwice = New("dropped-node-port-freed-twice", "an update gives a node port back, and once more a moment later, whoever has it by then",
		spec.AllocUpdateFreesOwn)
	NodePortTakenLate = New("node-port-taken-late", "an update finds that the node port which it names is free, and takes it a moment later without another look",
		spec.AllocNodePortHistoryExplained)
	NodePortFreedTwice = New("node-port-freed-twice", "the node ports of a deleted Service are given back once more a moment later, whoever has them by then",
		spec.AllocNodePortHistoryExplained)
	NodePortRefusalCached = New("node-port-refusal-cached", "an API server that has found a node port in use refuses it once more without another look",
		spec.AllocNodePortHistoryExplained, spec.APINodePortOwner)
)
