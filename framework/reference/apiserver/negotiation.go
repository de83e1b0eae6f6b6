package apiserver

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/munnerz/goautoneg"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// The shapes that a client may ask an object to be turned into with the "as" parameter of Accept.
const (
	asTable        = "Table"
	asMetadata     = "PartialObjectMetadata"
	asMetadataList = "PartialObjectMetadataList"
)

// encoding is what the client accepts: a media type, and the shape that objects are turned into ("" is none).
type encoding struct {
	media  string
	as     string
	beta   bool // the shape is that of v1beta1
	pretty bool
	stream bool // the client named ;stream=watch
}

// negotiate finds the best encoding among what the client accepts. For a watch there is no YAML.
func negotiate(r *http.Request, watch bool) (encoding, error) {
	pretty := wantsPretty(r)
	header := r.Header.Get("Accept")
	switch header { // what nearly every request carries
	case "", "*/*", mediaJSON, mediaJSON + ", */*":
		return encoding{media: mediaJSON, pretty: pretty}, nil
	case mediaProtobuf, mediaProtobuf + "," + mediaJSON:
		return encoding{media: mediaProtobuf}, nil
	}
	for _, clause := range goautoneg.ParseAccept(header) {
		e := encoding{pretty: pretty}
		switch {
		case clause.Type == "*" && clause.SubType == "*", clause.Type == "application" && clause.SubType == "*":
			e.media = mediaJSON
		case clause.Type == "application" && "application/"+clause.SubType == mediaJSON:
			e.media = mediaJSON
		case clause.Type == "application" && "application/"+clause.SubType == mediaYAML && !watch:
			e.media = mediaYAML
		case clause.Type == "application" && "application/"+clause.SubType == mediaProtobuf:
			e.media = mediaProtobuf
		default:
			continue
		}
		if v, ok := clause.Params["stream"]; ok {
			if v != "watch" || !watch {
				continue
			}
			e.stream = true
		}
		if v, ok := clause.Params["pretty"]; ok {
			e.pretty = v == "1"
		}
		if as, ok := clause.Params["as"]; ok {
			if !knownShape(as, clause.Params["g"], clause.Params["v"]) || as == asTable && e.media == mediaProtobuf {
				continue
			}
			e.as, e.beta = as, clause.Params["v"] == "v1beta1"
		}
		return e, nil
	}
	return encoding{}, notAcceptable()
}

// knownShape reports whether objects can be turned into the named kind.
func knownShape(as, group, version string) bool {
	return group == metav1.GroupName && (version == "v1" || version == "v1beta1") && (as == asTable || as == asMetadata || as == asMetadataList)
}

// wantsPretty tells people from programs as a real server does: by the pretty parameter, otherwise by the client's name.
func wantsPretty(r *http.Request) bool {
	if r.URL.RawQuery != "" {
		if v, ok := r.URL.Query()["pretty"]; ok {
			on, err := strconv.ParseBool(v[0])
			return err == nil && on
		}
	}
	agent := r.UserAgent()
	return strings.HasPrefix(agent, "curl/") || strings.HasPrefix(agent, "Wget/") || strings.HasPrefix(agent, "Mozilla/5.0")
}

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// maxPooledBuffer keeps the buffer of an occasional large list from being held for ever.
const maxPooledBuffer = 1 << 20

func releaseBuffer(b *bytes.Buffer) {
	if b.Cap() <= maxPooledBuffer {
		b.Reset()
		buffers.Put(b)
	}
}

func (e encoding) serializer() runtime.Serializer {
	c := codecs()
	if e.media == mediaJSON && e.pretty {
		return c.jsonPretty
	}
	return c.lenient[e.media]
}

// write answers with an object. It sets the code once the object is encoded, so that a failure to encode is an error too.
func (s *Server) write(w http.ResponseWriter, e encoding, code int, obj runtime.Object) {
	b := buffers.Get().(*bytes.Buffer)
	defer releaseBuffer(b)
	if err := e.serializer().Encode(obj, b); err != nil {
		b.Reset()
		status := statusOf(err)
		e, code = encoding{media: mediaJSON}, int(status.Code)
		if err := codecs().json.Encode(status, b); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
	}
	h := w.Header()
	h.Set("Content-Type", e.media)
	h.Set("Cache-Control", "no-cache, private")
	h.Set("Content-Length", strconv.Itoa(b.Len()))
	w.WriteHeader(code)
	_, _ = w.Write(b.Bytes()) // a client that is gone cannot be told
}
