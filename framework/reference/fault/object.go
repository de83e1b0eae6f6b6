package fault

import "github.com/service-conformance/conformance/framework/spec"

// A Service as an API object.
var (
	TypeMetaUnchecked = New("type-meta-unchecked", "apiVersion and kind are stored as sent, whatever they are",
		spec.APIVersionReturned, spec.APIVersionUnrecognized, spec.APIKindInferred, spec.APIKindMatchesEndpoint, spec.APIKindImmutable)

	NotRatcheted = New("not-ratcheted", "an update is refused for addresses that are stored and that it does not change, if new ones could not be written so", spec.APIRatcheting)

	OwnersDropped         = New("owners-dropped", "owner references are not stored", spec.APIMetadataPreserved)
	UIDOfClient           = New("uid-of-client", "a new Service keeps the uid that the client sent", spec.APISystemMetadata)
	UIDIgnored            = New("uid-ignored", "an update may name any uid", spec.APIUidImmutable)
	GenerateNameConstant  = New("generate-name-constant", "the same generateName makes the same name", spec.APIGenerateName)
	GenerateNameLong      = New("generate-name-long", "generateName is not shortened", spec.APIGenerateName)
	NameOptional          = New("name-optional", "a Service without a name is given one", spec.APINameRequired)
	CreateIdempotent      = New("create-idempotent", "a create with the name of an existing Service is answered with that Service", spec.APINameUnique, spec.APIFinalizerHolds)
	URLNameWins           = New("url-name-wins", "the name of the URL replaces that of the object", spec.APINameMatchesUrl)
	URLNamespaceWins      = New("url-namespace-wins", "the namespace of the URL replaces that of the object", spec.APINameMatchesUrl)
	NamespaceDefaulted    = New("namespace-defaulted", "a Service for a namespace that does not exist is put into the namespace default", spec.APINamespaceExists)
	FinalizersUnqualified = New("finalizers-unqualified", "finalizers need no domain", spec.APIFinalizerQualified)
	FinalizersIgnored     = New("finalizers-ignored", "finalizers do not hold a deleted Service", spec.APIFinalizerHolds)
	AnnotationsUnchecked  = New("annotations-unchecked", "annotations may have any key", spec.APIAnnotationSyntax)
	AnnotationsUnlimited  = New("annotations-unlimited", "annotations may be of any size", spec.APIAnnotationsSize)
	AnnotationsShort      = New("annotations-short", "annotations have at most 64 KiB", spec.APIAnnotationsSize)
	OwnersUnchecked       = New("owners-unchecked", "a Service may have several managing controllers", spec.APIOwnerOneController)
	LabelsUnchecked       = New("labels-unchecked", "labels may have any syntax", spec.APILabelSyntax)

	NameShort            = New("name-short", "a name has at most 24 characters", spec.APINameLabel)
	NameSubdomain        = New("name-subdomain", "a name may be a DNS subdomain", spec.APINameLabel)
	NameStartsWithLetter = New("name-starts-with-letter", "a name begins with a letter in every version", spec.APINameLeadingDigit)

	StaleWriteWins             = New("stale-write-wins", "the resourceVersion of an update or patch is not compared", spec.APIStaleUpdate, spec.APIStalePatch)
	ResourceVersionRequired    = New("resource-version-required", "an update without a resourceVersion is refused", spec.APIUnconditionalUpdate)
	ResourceVersionOfSpec      = New("resource-version-of-spec", "only a change of the spec gives a new resourceVersion", spec.APIResourceVersionChanges)
	UnchangedWritten           = New("unchanged-written", "a request that changes nothing gives a new resourceVersion", spec.APIResourceVersionChanges)
	ResourceVersionDropped     = New("resource-version-dropped", "the resourceVersion of a new Service is ignored", spec.APIResourceVersionOnCreate)
	ResourceVersionServerError = New("resource-version-server-error", "a resourceVersion that is no number is answered with a server error", spec.APIResourceVersionClientError)
	PatchFromCache             = New("patch-from-cache", "patches start from the state that the first patch of a Service has seen", spec.APIConcurrentPatches)
	PreconditionsIgnored       = New("preconditions-ignored", "the preconditions of a deletion are ignored", spec.APIDeletePreconditions)

	NotReadyLost        = New("publish-not-ready-lost", "publishNotReadyAddresses of a new Service is not stored", spec.APISpecPreserved, spec.APIPublishNotReadyAddresses)
	UpdateMerges        = New("update-merges", "an update keeps the selector and the external IPs that it leaves out", spec.APIUpdateReplaces, spec.APISelectorOptional)
	UnknownFieldsStored = New("unknown-fields-stored", "unknown fields are kept in an annotation", spec.APIUnknownFieldDropped)

	StatusOnCreate      = New("status-on-create", "a create stores the status that is sent with it", spec.APIStatusIgnored)
	StatusOnUpdate      = New("status-on-update", "an update stores the status that is sent with it", spec.APIStatusIgnored, spec.APISpecKeepsStatus)
	StatusClearedBySpec = New("status-cleared-by-spec", "an update of the main resource clears the status", spec.APISpecKeepsStatus)
	StatusNotStored     = New("status-not-stored", "the status subresource stores no status", spec.APIStatusStored)
	StatusTakesSpec     = New("status-takes-spec", "the status subresource stores the spec that is sent with it", spec.APIStatusKeepsSpec)
	StatusKeepsMetadata = New("status-keeps-metadata", "the status subresource leaves labels and annotations", spec.APIStatusMetadata)
	StatusCreates       = New("status-creates", "an update of the status of a Service that does not exist creates it", spec.APIStatusNotCreated)
)
