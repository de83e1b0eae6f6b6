package apiserver

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/service-conformance/conformance/framework/reference/rule"
	"github.com/service-conformance/conformance/framework/spec"
)

const (
	// defaultWatchTimeout ends a watch whose client does not say how long it wants.
	defaultWatchTimeout = 30 * time.Minute
	// bookmarkInterval is how often a quiet watch is told the resource version that it has reached.
	bookmarkInterval = time.Minute
	// watchBatch is how many events are encoded between two looks at the client.
	watchBatch = 256
)

// watch handles GET with watch=true on a collection: a stream of events until the client goes, the time is up or the
// server stops.
func (rq *request) watch() error {
	options := &internalversion.ListOptions{}
	if err := rq.listOptions(options); err != nil {
		return err
	}
	match, err := rq.matcher(options)
	if err != nil {
		return err
	}
	version, err := parseResourceVersion(options.ResourceVersion)
	if err != nil {
		return err
	}
	timeout := defaultWatchTimeout
	if options.TimeoutSeconds != nil && *options.TimeoutSeconds > 0 {
		timeout = secondsOf(*options.TimeoutSeconds)
	}
	ctx, cancel := context.WithTimeout(rq.r.Context(), timeout)
	defer cancel()

	stream, err := rq.newWatchStream()
	if err != nil {
		return err
	}
	initial := rq.book.watchBeginsWithAll.Do(version)
	if options.SendInitialEvents != nil {
		initial = *options.SendInitialEvents
	}
	if initial || version == 0 {
		if version > rq.server.store.current() {
			return storeError(errFutureVersion, rq.resource, rq.namespace, rq.name)
		}
		var entries []*entry
		entries, version = rq.server.store.list(rq.resource, rq.namespace)
		if initial {
			for _, e := range entries {
				if match(e.view) {
					stream.send(watch.Added, e.view)
				}
			}
			if options.SendInitialEvents != nil && options.AllowWatchBookmarks {
				stream.bookmark(version, true)
			}
		}
	}
	position := (*store).position
	if !initial { // the client has seen everything up to the version
		position = rq.book.watchFromVersion.Do
	}
	sequence, err := position(rq.server.store, rq.resource, version)
	if err != nil {
		stream.fail(storeError(err, rq.resource, rq.namespace, rq.name))
		return nil
	}
	stream.flush()

	ticker := time.NewTicker(bookmarkInterval)
	defer ticker.Stop()
	for stream.err == nil {
		events, next, seen, wake, err := rq.server.store.read(rq.resource, sequence, watchBatch)
		if err != nil {
			stream.fail(storeError(err, rq.resource, rq.namespace, rq.name))
			return nil
		}
		for i := range events {
			if inScope(rq, events[i].object) {
				stream.sendChange(&events[i], match)
			}
		}
		sequence = next
		if wake == nil {
			version = max(version, seen)
			continue
		}
		stream.flush()
		select {
		case <-wake:
		case <-ticker.C:
			if options.AllowWatchBookmarks {
				stream.bookmark(max(seen, version), false)
				stream.flush()
			}
		case <-ctx.Done():
			if options.AllowWatchBookmarks && rq.r.Context().Err() == nil {
				stream.bookmark(max(seen, version), false)
				stream.flush()
			}
			return nil
		}
	}
	return nil
}

// inScope reports whether an object is in the namespace that is watched.
func inScope(rq *request, obj object) bool {
	return rq.namespace == "" || obj.GetNamespace() == rq.namespace
}

func secondsOf(n int64) time.Duration {
	const most = int64((1<<63 - 1) / time.Second)
	return time.Duration(min(max(n, 0), most)) * time.Second
}

// watchStream writes events in the encoding that the client accepts.
type watchStream struct {
	rq       *request
	w        io.Writer
	rc       *http.ResponseController
	embedded runtime.Encoder // of the objects in the events
	buffer   bytes.Buffer
	err      error // of the connection; nothing is written after it
}

func (rq *request) newWatchStream() (*watchStream, error) {
	s := &watchStream{rq: rq, w: rq.w, rc: http.NewResponseController(rq.w), embedded: codecs().json}
	contentType := mediaJSON
	switch rq.encoding.media {
	case mediaProtobuf:
		s.embedded = codecs().protobuf
		s.w = protobuf.LengthDelimitedFramer.NewFrameWriter(rq.w)
		contentType = mediaProtobuf + ";stream=watch"
	case mediaJSON:
	default:
		return nil, notAcceptable()
	}
	if err := rq.validShape(); err != nil {
		return nil, err
	}
	h := rq.w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Cache-Control", "no-cache, private")
	h.Set("Transfer-Encoding", "chunked")
	return s, nil
}

// Rules for watches.
var (
	// This is so unless the client says otherwise, and a version of 0 is none.
	watchBeginsWithAll = rule.New("watch-begins-with-all", func(version uint64) bool { return version == 0 }, spec.APIWatchInitial)

	watchFromVersion = rule.New("watch-from-version", (*store).position, spec.APIWatchFromVersion)

	// An object that comes to match is added, one that no longer does is deleted.
	changeSeen = rule.New("watch-change-seen", func(e *event, was, is bool) (watch.EventType, object) {
		switch {
		case is && was:
			return watch.Modified, e.object
		case is:
			return watch.Added, e.object
		case was && e.kind == watch.Deleted:
			return watch.Deleted, e.object
		case was: // the client knows the object as it was
			last := e.previous.DeepCopyObject().(object)
			last.SetResourceVersion(e.object.GetResourceVersion())
			return watch.Deleted, last
		}
		return "", nil
	}, spec.APIWatchEvents, spec.APIWatchSelector)
)

// sendChange sends a change as a client with a selector sees it.
func (s *watchStream) sendChange(e *event, match func(object) bool) {
	is := e.kind != watch.Deleted && match(e.object)
	was := e.previous != nil && match(e.previous)
	if kind, obj := s.rq.book.changeSeen.Do(e, was, is); obj != nil {
		s.send(kind, obj)
	}
}

func (s *watchStream) send(kind watch.EventType, obj runtime.Object) {
	if s.err != nil {
		return
	}
	shaped := obj
	if kind != watch.Error {
		var err error
		if shaped, err = s.rq.shape(obj); err != nil {
			s.err = err
			return
		}
	}
	s.buffer.Reset()
	if s.rq.encoding.media == mediaProtobuf {
		s.err = s.encodeProtobuf(kind, shaped)
	} else {
		s.err = s.encodeJSON(kind, shaped)
	}
}

func (s *watchStream) encodeJSON(kind watch.EventType, obj runtime.Object) error {
	s.buffer.WriteString(`{"type":"`)
	s.buffer.WriteString(string(kind))
	s.buffer.WriteString(`","object":`)
	if err := s.embedded.Encode(obj, &s.buffer); err != nil {
		return err
	}
	s.buffer.Truncate(len(bytes.TrimRight(s.buffer.Bytes(), "\n")))
	s.buffer.WriteString("}\n")
	_, err := s.w.Write(s.buffer.Bytes())
	return err
}

func (s *watchStream) encodeProtobuf(kind watch.EventType, obj runtime.Object) error {
	if err := s.embedded.Encode(obj, &s.buffer); err != nil {
		return err
	}
	return codecs().protobufRaw.Encode(&metav1.WatchEvent{
		Type:   string(kind),
		Object: runtime.RawExtension{Raw: s.buffer.Bytes()},
	}, s.w)
}

// bookmark tells the client how far it has seen everything.
func (s *watchStream) bookmark(version uint64, initialEventsEnd bool) {
	obj := s.rq.server.empty(s.rq.resource)
	obj.SetResourceVersion(strconv.FormatUint(version, 10))
	if initialEventsEnd {
		obj.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	}
	s.send(watch.Bookmark, obj)
}

// fail ends the stream with an error event.
func (s *watchStream) fail(err error) {
	s.send(watch.Error, statusOf(err))
	s.flush()
}

func (s *watchStream) flush() {
	if s.err == nil {
		s.err = s.rc.Flush()
	}
}
