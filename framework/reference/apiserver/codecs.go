package apiserver

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// The media types that objects are read and written in.
const (
	mediaJSON     = runtime.ContentTypeJSON
	mediaYAML     = runtime.ContentTypeYAML
	mediaProtobuf = runtime.ContentTypeProtobuf
)

// acceptedMedia is how a real server lists its media types in 406 and 415 answers.
var acceptedMedia = []string{mediaJSON, mediaYAML, mediaProtobuf}

// codecSet holds the scheme of the served groups and the serializers on it. One set is shared by every server of the
// process: it is read-only and safe for concurrent use.
type codecSet struct {
	scheme                       *runtime.Scheme
	json, jsonStrict, jsonPretty runtime.Serializer
	protobuf                     runtime.Serializer
	protobufRaw                  runtime.Serializer            // without the envelope: frames of a watch stream
	lenient, strict              map[string]runtime.Serializer // by media type
	untyped                      map[string]runtime.Serializer // decode into what they are given, whatever apiVersion and kind the body names
}

// codecs builds the set at first use, so that importing the package costs nothing.
var codecs = sync.OnceValue(func() *codecSet {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, discoveryv1.AddToScheme, networkingv1.AddToScheme, metav1.AddMetaToScheme,
	} {
		utilruntime.Must(add(s))
	}
	metav1.AddToGroupVersion(s, metav1.SchemeGroupVersion)
	serializer := func(o json.SerializerOptions) runtime.Serializer {
		return json.NewSerializerWithOptions(json.DefaultMetaFactory, s, s, o)
	}
	c := &codecSet{
		scheme:      s,
		json:        serializer(json.SerializerOptions{StreamingCollectionsEncoding: true}),
		jsonStrict:  serializer(json.SerializerOptions{Strict: true}),
		jsonPretty:  serializer(json.SerializerOptions{Pretty: true}),
		protobuf:    protobuf.NewSerializer(s, s),
		protobufRaw: protobuf.NewRawSerializer(s, s),
	}
	c.lenient = map[string]runtime.Serializer{
		mediaJSON: c.json, mediaYAML: serializer(json.SerializerOptions{Yaml: true}), mediaProtobuf: c.protobuf,
	}
	c.strict = map[string]runtime.Serializer{
		mediaJSON: c.jsonStrict, mediaYAML: serializer(json.SerializerOptions{Yaml: true, Strict: true}), mediaProtobuf: c.protobuf,
	}
	none := runtime.NewScheme()
	c.untyped = map[string]runtime.Serializer{
		mediaJSON:     json.NewSerializerWithOptions(json.DefaultMetaFactory, none, none, json.SerializerOptions{}),
		mediaYAML:     json.NewSerializerWithOptions(json.DefaultMetaFactory, none, none, json.SerializerOptions{Yaml: true}),
		mediaProtobuf: protobuf.NewSerializer(none, none),
	}
	return c
})
