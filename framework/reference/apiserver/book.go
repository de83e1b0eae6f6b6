package apiserver

import (
	"net/http"
	"net/netip"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/service-conformance/conformance/framework/reference/rule"
	"github.com/service-conformance/conformance/framework/reference/service"
)

// The kinds of rules for requests.
type (
	// A negotiating rule chooses the encoding of the answer.
	negotiating = func(r *http.Request, watch bool) (encoding, error)
	// A warning rule returns what a client is told of a Service that it wrote, or of a subresource.
	warning = func(s *Server, svc *corev1.Service, subresource string) []string
	// A seeing rule returns a Service as readers see it.
	seeing = func(s *Server, svc *corev1.Service) *corev1.Service
	// A discovering rule returns what discovery says of a resource and its subresources.
	discovering = func(*resource) []metav1.APIResource
	// A reading rule reads an object. A *strictError comes with the object.
	reading = func(s *Server, res *resource, decoder runtime.Decoder, data []byte) (object, error)
	// An identifying rule compares an object with the URL.
	identifying = func(rq *request, obj object) error
	// A dry-running rule reports whether a request is a dry run, from whether the client asks for one.
	dryRunning = func(asked bool) bool
	// A making rule completes or refuses a new object.
	making = func(s *Server, res *resource, obj object) error
	// An accepting rule takes what a new object needs.
	accepting = func(s *Server, res *resource, obj object, dryRun bool) (transaction, error)
	// A changing rule completes or refuses obj, the successor of old.
	changing = func(rq *request, obj, old object) error
	// A conflicting rule answers a create that the store has refused.
	conflicting = func(s *Server, res *resource, obj object, err error) (object, error)
	// A storing rule stores the successor of an object.
	storing = func(s *Server, res *resource, old *entry, obj object, writes []write) (*entry, error)
	// A matching rule makes the filter of a request from its selectors.
	matching = func(rq *request, options *internalversion.ListOptions) (func(object) bool, error)
	// A selecting rule returns the field selector that a request may have.
	selecting = func(res *resource, selector fields.Selector) (fields.Selector, error)
	// A continuing rule returns the state that a list was begun on, and the key after which it goes on.
	continuing = func(rq *request, token string) (entries []*entry, version uint64, after string, err error)
	// A noticing rule returns what a watch delivers of a change, no object if nothing. The selector matched before, and does now, or not.
	noticing = func(e *event, was, is bool) (watch.EventType, object)
	// A modifying rule carries out a modification, and answers.
	modifying = func(rq *request, m modification) error
	// These rules apply a patch of one type to a document.
	operating        = func(patch jsonpatch.Patch, document []byte) ([]byte, error)
	merging          = func(document, patch []byte) ([]byte, error)
	strategicMerging = func(document, patch map[string]any, lookup strategicpatch.LookupPatchMeta) (map[string]any, error)
	// An applying rule merges a configuration into a live object.
	applying = func(application) (runtime.Object, error)
	// A marking rule stores an object as one that is being deleted.
	marking = func(s *Server, res *resource, e *entry, marked object) (*entry, error)
	// A committing rule stores what an update leaves, and ends the transaction.
	committing = func(rq *request, old *entry, tx transaction, store func() (object, error)) (object, error)
	// A removing rule removes an object that nothing holds, and returns what readers have seen last.
	removing = func(s *Server, res *resource, e *entry) (object, error)
	// A deleting rule deletes one object of a collection.
	deleting = func(rq *request, e *entry, options *metav1.DeleteOptions) (object, error)
)

// requestBook is the rules for requests on the objects of one resource. It is read only once it is in use.
type requestBook struct {
	pure rule.Pure

	// Requests of any kind.
	mediaNegotiated   rule.Rule[negotiating]
	methodRefused     rule.Rule[func() error]
	warningWritten    rule.Rule[func(text string) (string, error)]
	warned            rule.Rule[warning]
	serviceSeen       rule.Rule[seeing]
	noEndpointAnswers rule.Rule[func(name string) error]
	discovered        rule.Rule[discovering]

	// Parameters and bodies.
	dryRunValue       rule.Rule[func(dryRun []string) field.ErrorList]
	validationValue   rule.Rule[func(validation string) field.ErrorList]
	validationDefault rule.Rule[func(validation string) string]
	unknownRefused    rule.Rule[func(validation string) bool]
	unknownWarnedOf   rule.Rule[func(validation string) bool]
	mediaRead         rule.Rule[func(media string, accepted []string) (string, error)]
	objectRead        rule.Rule[reading]
	bodyRefused       rule.Rule[func(message string) error]
	versionRead       rule.Rule[func(version string) (uint64, error)]
	nameOfURL         rule.Rule[identifying]
	namespaceOfURL    rule.Rule[identifying]

	// Creates.
	dryRunCreate   rule.Rule[dryRunning]
	creates        []rule.Rule[making]
	nameGenerated  rule.Rule[func(object)]
	createAccepted rule.Rule[accepting]
	nameUnique     rule.Rule[conflicting]
	putCreates     rule.Rule[func(*request) bool]

	// Updates and patches.
	dryRunUpdate       rule.Rule[dryRunning]
	putReplaces        rule.Rule[func(sent, old object) object]
	changeOfLatest     rule.Rule[func(rq *request, stored object) object]
	updates            []rule.Rule[changing]
	updateOwned        rule.Rule[func(s *Server, res *resource, old *entry, obj *object, subresource, manager string) error]
	unchangedStays     rule.Rule[func(obj, old object) bool]
	storedBeforeFreed  rule.Rule[committing]
	changeStored       rule.Rule[storing]
	lastFinalizerFrees rule.Rule[func(s *Server, res *resource, obj object, subresource string)]
	changeAnswered     rule.Rule[func(rq *request, view object) object]

	// Patches and server-side apply.
	patchApplied          rule.Rule[modifying]
	operationsHaveValues  rule.Rule[func(jsonpatch.Patch) error]
	operationsApplied     rule.Rule[operating]
	mergeApplied          rule.Rule[merging]
	strategicMerge        rule.Rule[func(p *patcher, old object) (object, error)]
	strategicMergeApplied rule.Rule[strategicMerging]
	strategicMergeRefused rule.Rule[func(error) error]
	applyCreates          rule.Rule[func(*request) bool]
	applyManagerNamed     rule.Rule[func(o *metav1.PatchOptions, patchType types.PatchType) field.ErrorList]
	configurationRead     rule.Rule[func(data []byte) (map[string]any, error)]
	configurationTyped    rule.Rule[func(*unstructured.Unstructured) error]
	configurationRefused  rule.Rule[func(message string) error]
	configurationApplied  rule.Rule[applying]

	// Deletions.
	dryRunDelete       rule.Rule[dryRunning]
	dryRunDeleted      rule.Rule[func(s *Server, e *entry) object]
	missingNotDeleted  rule.Rule[func(s *Server, res *resource, namespace, name string) (object, error)]
	preconditionsMet   rule.Rule[func(res *resource, obj object, p *metav1.Preconditions) error]
	nothingHolds       rule.Rule[func(object) bool]
	deletionMarked     rule.Rule[marking]
	goneBeforeFreed    rule.Rule[removing]
	collectionSelected rule.Rule[matching]
	collectionDeleted  rule.Rule[deleting]

	// Lists and watches.
	fieldsSelectable   rule.Rule[selecting]
	listNamespace      rule.Rule[func(*request) string]
	listSelected       rule.Rule[matching]
	listContinued      rule.Rule[continuing]
	watchBeginsWithAll rule.Rule[func(version uint64) bool]
	watchFromVersion   rule.Rule[func(s *store, res *resource, version uint64) (uint64, error)]
	changeSeen         rule.Rule[noticing]
}

func newRequestBook() *requestBook {
	return &requestBook{
		pure: requestKinds,

		mediaNegotiated:   mediaNegotiated,
		methodRefused:     methodRefused,
		warningWritten:    warningWritten,
		warned:            warned,
		serviceSeen:       serviceSeen,
		noEndpointAnswers: noEndpointAnswers,
		discovered:        discovered,

		dryRunValue:       dryRunValue,
		validationValue:   validationValue,
		validationDefault: validationDefault,
		unknownRefused:    unknownRefused,
		unknownWarnedOf:   unknownWarnedOf,
		mediaRead:         mediaRead,
		objectRead:        objectRead,
		bodyRefused:       bodyRefused,
		versionRead:       versionRead,
		nameOfURL:         nameOfURL,
		namespaceOfURL:    namespaceOfURL,

		dryRunCreate:   dryRunCreate,
		creates:        []rule.Rule[making]{versionUnset, systemMetadata, namespaceExists},
		nameGenerated:  nameGenerated,
		createAccepted: createAccepted,
		nameUnique:     nameUnique,
		putCreates:     putCreates,

		dryRunUpdate:       dryRunUpdate,
		putReplaces:        putReplaces,
		changeOfLatest:     changeOfLatest,
		updates:            []rule.Rule[changing]{uidOfUpdate, versionCurrent, systemMetadataKept},
		updateOwned:        updateOwned,
		unchangedStays:     unchangedStays,
		storedBeforeFreed:  storedBeforeFreed,
		changeStored:       changeStored,
		lastFinalizerFrees: lastFinalizerFrees,
		changeAnswered:     changeAnswered,

		patchApplied:          patchApplied,
		operationsHaveValues:  operationsHaveValues,
		operationsApplied:     operationsApplied,
		mergeApplied:          mergeApplied,
		strategicMerge:        strategicMerge,
		strategicMergeApplied: strategicMergeApplied,
		strategicMergeRefused: strategicMergeRefused,
		applyCreates:          applyCreates,
		applyManagerNamed:     applyManagerNamed,
		configurationRead:     configurationRead,
		configurationTyped:    configurationTyped,
		configurationRefused:  configurationRefused,
		configurationApplied:  configurationApplied,

		dryRunDelete:       dryRunDelete,
		dryRunDeleted:      dryRunDeleted,
		missingNotDeleted:  missingNotDeleted,
		preconditionsMet:   preconditionsMet,
		nothingHolds:       nothingHolds,
		deletionMarked:     deletionMarked,
		goneBeforeFreed:    goneBeforeFreed,
		collectionSelected: collectionSelected,
		collectionDeleted:  collectionDeleted,

		fieldsSelectable:   fieldsSelectable,
		listNamespace:      listNamespace,
		listSelected:       listSelected,
		listContinued:      listContinued,
		watchBeginsWithAll: watchBeginsWithAll,
		watchFromVersion:   watchFromVersion,
		changeSeen:         changeSeen,
	}
}

// The kinds of rules of a control plane.
type (
	// A recording rule makes the rules of Services for another server beside s, with a record of what is in use.
	recording = func(s, another *Server, gates map[string]bool) (*service.Rules, error)
	// A ranging rule reads the CIDRs of a ServiceCIDR.
	ranging = func(texts []string) ([]netip.Prefix, field.ErrorList)
	// A publishing rule returns the schema of a group version.
	publishing = func(schema.GroupVersion) *openAPIDocument
)

// clusterBook is the rules of a control plane that are not about requests: what it makes by itself, and what the objects behind
// allocation do. It is read only once it is in use.
type clusterBook struct {
	pure rule.Pure

	// Starts and restarts.
	recordRestored     rule.Rule[func(s *Server, rules *service.Rules) error]
	recordShared       rule.Rule[recording]
	rangesChanged      rule.Rule[func(s *Server, prefixes []netip.Prefix)]
	kubernetesAddress  rule.Rule[func(primary netip.Prefix) netip.Addr]
	schemaPublished    rule.Rule[publishing]
	podsInReach        rule.Rule[func(namespace string) string]
	slicesRestored     rule.Rule[func(*discoveryv1.EndpointSlice) bool]
	controllersCatchUp rule.Rule[func(*Server)]

	// ServiceCIDRs.
	newCIDRs            rule.Rule[ranging]
	cidrsKept           rule.Rule[func(texts, old []string) ([]netip.Prefix, field.ErrorList)]
	rangeAdded          rule.Rule[func(s *Server, cidr *networkingv1.ServiceCIDR, prefixes []netip.Prefix)]
	leavingGivesNothing rule.Rule[func(s *Server, name string)]
	leavingWaits        rule.Rule[func(s *Server, leaving *networkingv1.ServiceCIDR) bool]
	defaultReady        rule.Rule[func(*networkingv1.ServiceCIDR)]
	defaultRestored     rule.Rule[func(*Server)]
	defaultKept         rule.Rule[func(s *Server, prefixes []netip.Prefix) bool]

	// IPAddresses.
	ipAddressName     rule.Rule[func(name string, prefix bool) []string]
	ipAddressReserves rule.Rule[func(s *Server, ip netip.Addr, address *networkingv1.IPAddress) (transaction, error)]
	ipAddressParent   rule.Rule[func(parent, old *networkingv1.ParentReference) field.ErrorList]
	ipAddressLabels   rule.Rule[func(netip.Addr) map[string]string]
	missingRestored   rule.Rule[func(s *Server, ip netip.Addr, owner *corev1.Service)]
	unusedRemoved     rule.Rule[func(s *Server, name string)]
}

func newClusterBook() *clusterBook {
	return &clusterBook{
		pure: clusterKinds,

		recordRestored:     recordRestored,
		recordShared:       recordShared,
		rangesChanged:      rangesChanged,
		kubernetesAddress:  kubernetesAddress,
		schemaPublished:    schemaPublished,
		podsInReach:        podsInReach,
		slicesRestored:     slicesRestored,
		controllersCatchUp: controllersCatchUp,

		newCIDRs:            newCIDRs,
		cidrsKept:           cidrsKept,
		rangeAdded:          rangeAdded,
		leavingGivesNothing: leavingGivesNothing,
		leavingWaits:        leavingWaits,
		defaultReady:        defaultReady,
		defaultRestored:     defaultRestored,
		defaultKept:         defaultKept,

		ipAddressName:     ipAddressName,
		ipAddressReserves: ipAddressReserves,
		ipAddressParent:   ipAddressParent,
		ipAddressLabels:   ipAddressLabels,
		missingRestored:   missingRestored,
		unusedRemoved:     unusedRemoved,
	}
}

// Book returns the rules of the API server with the requirements that they follow, sorted by name.
func Book() []rule.Entry {
	return rule.Entries(struct {
		requestBook
		clusterBook
	}{*newRequestBook(), *newClusterBook()})
}
