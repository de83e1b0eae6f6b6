package apiserver

import (
	"cmp"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	internalversionscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/service-conformance/conformance/framework/reference/rule"
	"github.com/service-conformance/conformance/framework/spec"
)

// maxBody is the limit of a request body in bytes, that of a real server.
const maxBody = 3 << 20

// request is one request on a resource.
type request struct {
	server      *Server
	book        *requestBook // of the resource
	w           http.ResponseWriter
	r           *http.Request
	resource    *resource
	namespace   string // "" for cluster-wide resources and for lists across namespaces
	name        string // "" for a collection
	subresource string
	rest        string // what follows the subresource
	legacyWatch bool   // the deprecated /watch/ prefix
	columnsSent bool   // a table has been sent: the next one of a watch needs no column definitions
	encoding    encoding
}

// ServeHTTP handles one request. It answers a panic with a Status of code 500: a bug, but not one that takes the server down.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer func() {
		if p := recover(); p != nil {
			if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
				panic(p)
			}
			s.writeError(w, r, apierrors.NewInternalError(fmt.Errorf("panic: %v\n%s", p, debug.Stack())))
		}
	}()
	if err := s.handle(w, r); err != nil {
		s.writeError(w, r, err)
	}
}

func (s *Server) handle(w http.ResponseWriter, r *http.Request) error {
	path := strings.TrimSuffix(r.URL.Path, "/")
	if isHealthCheck(path) {
		return s.health(w, r, path)
	}
	if !s.authorized(r) {
		return apierrors.NewUnauthorized("Unauthorized")
	}
	switch {
	case strings.HasPrefix(path, "/api/"), strings.HasPrefix(path, "/apis/"):
		return s.handleAPI(w, r, strings.Split(path[1:], "/"))
	case path == "/api", path == "/apis", path == "", path == "/version", path == "/openapi/v3", strings.HasPrefix(path, "/openapi/v3/"):
		if r.Method != http.MethodGet {
			return methodNotAllowed()
		}
		switch {
		case path == "":
			return s.index(w)
		case path == "/version":
			return s.serveVersion(w)
		case path == "/api" || path == "/apis":
			return s.serveGroups(w, r, path)
		case s.lacks(spec.FeatureOpenAPI):
			return unknownPath()
		default:
			return s.serveOpenAPI(w, r, strings.TrimPrefix(strings.TrimPrefix(path, "/openapi/v3"), "/"))
		}
	}
	return unknownPath()
}

func (s *Server) authorized(r *http.Request) bool {
	if s.options.Token == "" {
		return true
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.EqualFold(scheme, "bearer") && subtle.ConstantTimeCompare([]byte(strings.TrimSpace(token)), []byte(s.options.Token)) == 1
}

// handleAPI reads the parts of a path below /api or /apis.
func (s *Server) handleAPI(w http.ResponseWriter, r *http.Request, parts []string) error {
	var gv schema.GroupVersion
	switch {
	case parts[0] == "api":
		gv.Version, parts = parts[1], parts[2:]
	case len(parts) == 2:
		return s.serveGroup(w, r, parts[1])
	default:
		gv.Group, gv.Version, parts = parts[1], parts[2], parts[3:]
	}
	if !s.serves(gv) {
		return unknownPath()
	}
	if len(parts) == 0 {
		if r.Method != http.MethodGet {
			return methodNotAllowed()
		}
		return s.serveResources(w, r, gv)
	}
	if slices.Contains(parts, "") {
		return unknownPath()
	}
	rq := &request{server: s, w: w, r: r}
	if parts[0] == "watch" && len(parts) > 1 {
		rq.legacyWatch, parts = true, parts[1:]
	}
	if parts[0] == "namespaces" && len(parts) > 2 && findResource(gv, parts[2]) != nil && findResource(gv, parts[2]).namespaced {
		rq.namespace, parts = parts[1], parts[2:]
	}
	rq.resource = findResource(gv, parts[0])
	if rq.resource == nil {
		return unknownPath()
	}
	rq.book = s.book(rq.resource)
	if len(parts) > 1 {
		rq.name = parts[1]
	}
	if len(parts) > 2 {
		rq.subresource, rq.rest = parts[2], strings.Join(parts[3:], "/")
	}
	return rq.handle()
}

// handle calls the handler of the verb.
func (rq *request) handle() error {
	res := rq.resource
	if rq.name != "" && res.namespaced && rq.namespace == "" {
		return unknownPath()
	}
	if rq.subresource != "" {
		switch {
		case !slices.Contains(res.subresources, rq.subresource), rq.rest != "" && rq.subresource != "proxy", rq.legacyWatch:
			return unknownPath()
		case rq.subresource == "proxy":
			return rq.proxy()
		}
	}
	watch := rq.legacyWatch || rq.name == "" && rq.r.Method == http.MethodGet && rq.wantsWatch()
	handler := rq.handler(watch)
	if handler == nil {
		return rq.book.methodRefused.Do()
	}
	if res.deprecated != nil {
		rq.warn(res.deprecated(rq.server.minor)...)
	}
	e, err := rq.book.mediaNegotiated.Do(rq.r, watch)
	if err != nil {
		return err
	}
	rq.encoding = e
	if err := rq.lacksDryRun(); err != nil {
		return err
	}
	return handler()
}

// handler returns the handler of the verb, nil if the path does not serve the method.
func (rq *request) handler(watch bool) func() error {
	method, res := rq.r.Method, rq.resource
	switch {
	case rq.legacyWatch:
		if method == http.MethodGet {
			return rq.watch
		}
	case rq.name == "":
		inOneNamespace := !res.namespaced || rq.namespace != ""
		switch {
		case method == http.MethodGet && watch:
			return rq.watch
		case method == http.MethodGet:
			return rq.list
		case method == http.MethodPost && inOneNamespace:
			return rq.create
		case method == http.MethodDelete && inOneNamespace && !res.noDeleteCollection:
			return rq.deleteCollection
		}
	case rq.subresource == "finalize":
		if method == http.MethodPut {
			return rq.put
		}
	case method == http.MethodGet:
		return rq.get
	case method == http.MethodPut:
		return rq.put
	case method == http.MethodPatch:
		return rq.patch
	case method == http.MethodDelete && rq.subresource == "":
		return rq.delete
	}
	return nil
}

// Rules for requests of any kind.
var (
	mediaNegotiated = rule.New("media-negotiated", negotiate, spec.APIContentJSON, spec.APIContentYaml, spec.APIContentProtobuf, spec.APIAcceptUnsupported)

	methodRefused = rule.New("method-refused", methodNotAllowed, spec.APIMethodNotAllowed)

	warningWritten = rule.New("warning-written", func(text string) (string, error) {
		return utilnet.NewWarningHeader(299, "-", text)
	}, spec.APIWarningForm)
)

// wantsWatch reads the watch parameter of a list: present and neither "0" nor "false".
func (rq *request) wantsWatch() bool {
	if !strings.Contains(rq.r.URL.RawQuery, "watch") {
		return false
	}
	v, ok := rq.r.URL.Query()["watch"]
	return ok && v[0] != "0" && !strings.EqualFold(v[0], "false")
}

// query decodes the query parameters into an options type, defaults included. The error is a Status.
func (rq *request) query(into runtime.Object) error {
	if rq.r.URL.RawQuery == "" {
		return nil
	}
	if err := internalversionscheme.ParameterCodec.DecodeParameters(rq.r.URL.Query(), metav1.SchemeGroupVersion, into); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	return nil
}

// writeOptions are the parameters that create, update and patch share.
type writeOptions struct {
	dryRun  bool
	manager string
	// Unknown and duplicate fields are refused, or warned of, or neither.
	refusesUnknown, warnsOfUnknown bool
	warn                           func(texts ...string) // tells the client; nil for a write of the server itself
}

// tell warns the client, if there is one.
func (o writeOptions) tell(warnings []string) {
	if o.warn != nil {
		o.warn(warnings...)
	}
}

// strict reports whether anybody wants to know of unknown and duplicate fields.
func (o writeOptions) strict() bool { return o.refusesUnknown || o.warnsOfUnknown }

// Rules for the parameters of writes.
var (
	dryRunValue = rule.New("dry-run-value", func(dryRun []string) field.ErrorList {
		return metav1validation.ValidateDryRun(field.NewPath("dryRun"), dryRun)
	}, spec.APIDryRunValue)

	validationValue = rule.New("field-validation-value", func(validation string) field.ErrorList {
		return metav1validation.ValidateFieldValidation(field.NewPath("fieldValidation"), validation)
	}, spec.APIFieldValidationValue)

	validationDefault = rule.New("field-validation-default", func(validation string) string {
		return cmp.Or(validation, metav1.FieldValidationWarn)
	}, spec.APIFieldValidationWarn)

	unknownRefused = rule.New("unknown-fields-refused", func(validation string) bool {
		return validation == metav1.FieldValidationStrict
	}, spec.APIFieldValidationStrict)

	unknownWarnedOf = rule.New("unknown-fields-warned-of", func(validation string) bool {
		return validation == metav1.FieldValidationWarn
	}, spec.APIFieldValidationWarn, spec.APIFieldValidationIgnore)
)

func invalidOptions(kind string, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: kind}, "", errs)
}

// newWriteOptions checks the parameters as options of a kind. The errors are those that have been found already.
func (rq *request) newWriteOptions(kind string, o metav1.UpdateOptions, errs field.ErrorList) (writeOptions, error) {
	errs = append(errs, metav1validation.ValidateFieldManager(o.FieldManager, field.NewPath("fieldManager"))...)
	errs = append(errs, rq.book.dryRunValue.Do(o.DryRun)...)
	errs = append(errs, rq.book.validationValue.Do(o.FieldValidation)...)
	if err := invalidOptions(kind, errs); err != nil {
		return writeOptions{}, err
	}
	validation := rq.book.validationDefault.Do(o.FieldValidation)
	if rq.server.lacks(spec.FeatureFieldValidation) {
		validation = metav1.FieldValidationIgnore
	}
	return writeOptions{
		dryRun: len(o.DryRun) > 0, manager: rq.fieldManager(o.FieldManager), warn: rq.warn,
		refusesUnknown: rq.book.unknownRefused.Do(validation), warnsOfUnknown: rq.book.unknownWarnedOf.Do(validation),
	}, nil
}

// writeOptions decodes the parameters of a create or an update, which are the same.
func (rq *request) writeOptions(kind string) (writeOptions, error) {
	var o metav1.UpdateOptions
	if err := rq.query(&o); err != nil {
		return writeOptions{}, err
	}
	return rq.newWriteOptions(kind, o, nil)
}

func (rq *request) patchOptions(patchType types.PatchType) (writeOptions, bool, error) {
	var o metav1.PatchOptions
	if err := rq.query(&o); err != nil {
		return writeOptions{}, false, err
	}
	errs := rq.book.applyManagerNamed.Do(&o, patchType)
	if o.Force != nil && patchType != types.ApplyYAMLPatchType {
		errs = append(errs, field.Forbidden(field.NewPath("force"), "may not be specified for non-apply patch"))
	}
	same := metav1.UpdateOptions{DryRun: o.DryRun, FieldManager: o.FieldManager, FieldValidation: o.FieldValidation}
	options, err := rq.newWriteOptions("PatchOptions", same, errs)
	return options, o.Force != nil && *o.Force, err
}

// fieldManager is the name that a write is recorded under: the one asked for, or the start of the User-Agent.
func (rq *request) fieldManager(manager string) string {
	if manager != "" {
		return manager
	}
	manager, _, _ = strings.Cut(rq.r.UserAgent(), "/")
	clean := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return -1
		}
		return r
	}, manager)
	if len(clean) > metav1validation.FieldManagerMaxLength {
		clean = clean[:metav1validation.FieldManagerMaxLength]
	}
	if clean == "" {
		return "unknown"
	}
	return clean
}

// readBodyTimeout is how long a client may take to send the body of a request; tests shorten it.
var readBodyTimeout = 30 * time.Second

// body reads the request body.
func (rq *request) body() ([]byte, error) {
	wire := http.NewResponseController(rq.w)
	_ = wire.SetReadDeadline(time.Now().Add(readBodyTimeout)) // without a connection there is nothing to wait for
	data, err := io.ReadAll(http.MaxBytesReader(rq.w, rq.r.Body, maxBody))
	if err == nil { // else nobody waits for the rest of the body either
		_ = wire.SetReadDeadline(time.Time{})
	}
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", maxBody))
	case err != nil:
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the body of the request cannot be read: %v", err))
	}
	return data, nil
}

// bodyMedia is the media type of the body; JSON when the client does not say.
func (rq *request) bodyMedia(accepted ...string) (string, error) {
	header := rq.r.Header.Get("Content-Type")
	if header == "" {
		return accepted[0], nil
	}
	media, _, err := mime.ParseMediaType(header)
	if err != nil {
		return "", unsupportedMedia(accepted...)
	}
	return rq.book.mediaRead.Do(media, accepted)
}

// Rules for bodies.
var (
	mediaRead = rule.New("media-read", func(media string, accepted []string) (string, error) {
		if !slices.Contains(accepted, media) {
			return "", unsupportedMedia(accepted...)
		}
		return media, nil
	}, spec.APIContentJSON, spec.APIContentYaml, spec.APIContentProtobuf, spec.APIContentUnsupported)

	objectRead = rule.New("object-read", (*Server).decode,
		spec.APIVersionReturned, spec.APIVersionUnrecognized, spec.APIKindInferred, spec.APIKindMatchesEndpoint, spec.APIKindImmutable, spec.APIUnknownFieldDropped)

	bodyRefused = rule.New("body-refused", func(message string) error { return apierrors.NewBadRequest(message) }, spec.APIMalformedBody)
)

// decode reads an object of the resource's kind, with the schema's defaults. Unknown and duplicate fields are
// dropped, warned of or refused as asked for.
func (rq *request) decode(data []byte, media string, options writeOptions) (object, error) {
	decoder := codecs().lenient[media]
	if options.strict() {
		decoder = codecs().strict[media]
	}
	obj, err := rq.book.objectRead.Do(rq.server, rq.resource, decoder, data)
	var strict *strictError
	if errors.As(err, &strict) && options.warnsOfUnknown {
		rq.warn(strict.warnings...)
		return obj, nil
	}
	return obj, err
}

// decode reads an object. A *strictError comes with the object.
func (s *Server) decode(res *resource, decoder runtime.Decoder, data []byte) (object, error) {
	refused := s.book(res).bodyRefused.Do
	decoded, gvk, err := decoder.Decode(data, &res.gvk, nil)
	strict, isStrict := runtime.AsStrictDecodingError(err)
	if err != nil && (!isStrict || decoded == nil) {
		if gvk != nil && gvk.Kind != "" {
			return nil, refused(fmt.Sprintf("%s in version %q cannot be handled as a %s: %v", gvk.Kind, gvk.Version, res.gvk.Kind, err))
		}
		return nil, refused(fmt.Sprintf("the object provided is unrecognized (must be of type %s): %v (%s)", res.gvk.Kind, err, summary(data)))
	}
	obj, ok := decoded.(object)
	if !ok || *gvk != res.gvk {
		return nil, refused(fmt.Sprintf("%s in version %q cannot be handled as a %s: converting (%s.%s) to (%s.%s): unknown conversion",
			gvk.Kind, gvk.Version, res.gvk.Kind, gvk.Version, gvk.Kind, res.gvk.Version, res.gvk.Kind))
	}
	obj.GetObjectKind().SetGroupVersionKind(res.gvk)
	res.strategy.defaults(s, obj)
	if isStrict {
		return obj, newStrictError(res, strict.Errors())
	}
	return obj, nil
}

// summary is the start of a body that cannot be read: as text where it looks like JSON, otherwise in hexadecimal.
func summary(data []byte) string {
	const shown = 30
	switch {
	case len(data) == 0:
		return "<empty>"
	case data[0] == '{' && len(data) > shown:
		return string(data[:shown]) + " ..."
	case data[0] == '{':
		return string(data)
	}
	return hex.EncodeToString(data[:min(shown, len(data))])
}

// strictError is the refusal of unknown and duplicate fields. It comes with an object that does without them.
type strictError struct {
	*apierrors.StatusError
	messages, warnings []string
}

// decodingWarnings are the lines of an error of decoding. The reader of YAML tells of several duplicate keys in one error, below a heading.
func decodingWarnings(err error) (warnings []string) {
	_, lines, isYAML := strings.Cut(err.Error(), "yaml: unmarshal errors:\n")
	if !isYAML {
		return []string{err.Error()}
	}
	for line := range strings.SplitSeq(lines, "\n") {
		warnings = append(warnings, strings.TrimSpace(line))
	}
	return warnings
}

func newStrictError(res *resource, errs []error) *strictError {
	messages := make([]string, len(errs))
	var warnings []string
	for i, err := range errs {
		messages[i] = err.Error()
		warnings = append(warnings, decodingWarnings(err)...)
	}
	return &strictError{messages: messages, warnings: warnings, StatusError: apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: strict decoding error: %s",
		res.gvk.Kind, res.gvk.Version, res.gvk.Kind, strings.Join(messages, ", ")))}
}

// maxWarnings bounds the header of a hostile body.
const maxWarnings = 100

// warn adds Warning headers (RFC 7234 section 5.5), each text once. It must be called before the answer is written.
func (rq *request) warn(texts ...string) {
	if rq.server.lacks(spec.FeatureWarnings) {
		return
	}
	for i, text := range texts {
		if i == maxWarnings {
			return
		}
		if header, err := rq.book.warningWritten.Do(text); err == nil && !slices.Contains(rq.w.Header()["Warning"], header) {
			rq.w.Header().Add("Warning", header)
		}
	}
}
