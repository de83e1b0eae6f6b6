package apiserver

import (
	"errors"
	"net/http"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/service-conformance/conformance/framework/reference/fault"
)

// What can be wrong with answers of any kind.
var answerFaults = []requestWrong{
	{fault.AnyIsYAML, negotiated(func(r *http.Request, e encoding) (encoding, error) {
		if e.media == mediaJSON && r.Header.Get("Accept") == "*/*" {
			e.media = mediaYAML
		}
		return e, nil
	})},
	{fault.YAMLIsJSON, negotiated(func(_ *http.Request, e encoding) (encoding, error) {
		if e.media == mediaYAML {
			e.media = mediaJSON
		}
		return e, nil
	})},
	{fault.ProtobufRefused, negotiated(func(_ *http.Request, e encoding) (encoding, error) {
		if e.media == mediaProtobuf {
			return encoding{}, notAcceptable()
		}
		return e, nil
	})},
	{fault.AnyMediaIsServed, func(b *requestBook) {
		b.mediaNegotiated.Wrap(func(right negotiating) negotiating {
			return func(r *http.Request, watch bool) (encoding, error) {
				e, err := right(r, watch)
				if err != nil {
					return encoding{media: mediaJSON}, nil
				}
				return e, nil
			}
		})
	}},
	{fault.MethodNotFound, func(b *requestBook) { b.methodRefused.Replace(unknownPath) }},
	{fault.ProxyBadGateway, func(b *requestBook) {
		b.noEndpointAnswers.Replace(func(name string) error {
			return apierrors.NewGenericServerResponse(http.StatusBadGateway, "get", services.groupResource(), name, "no endpoint answers", 0, false)
		})
	}},
	{fault.WarningCode, func(b *requestBook) {
		b.warningWritten.Wrap(func(right func(string) (string, error)) func(string) (string, error) {
			return func(text string) (string, error) {
				header, err := right(text)
				if err != nil {
					return "", err
				}
				return "199" + header[3:], nil
			}
		})
	}},
	{fault.WarningAlways, func(b *requestBook) {
		b.warned.Wrap(func(right warning) warning {
			return func(s *Server, svc *corev1.Service, subresource string) []string {
				return append(right(s, svc, subresource), "this Service was written")
			}
		})
	}},
	{fault.ManagedFieldsHidden, func(b *requestBook) {
		b.serviceSeen.Wrap(func(right seeing) seeing {
			return func(s *Server, svc *corev1.Service) *corev1.Service {
				seen := right(s, svc).DeepCopy()
				seen.ManagedFields = nil
				return seen
			}
		})
	}},
	{fault.DiscoveryWithoutStatus, discover(func(list []metav1.APIResource) []metav1.APIResource {
		return slices.DeleteFunc(list, func(r metav1.APIResource) bool { return r.Name == services.name+"/status" })
	})},
	{fault.DiscoveryWithoutCollection, discover(func(list []metav1.APIResource) []metav1.APIResource {
		list[0].Verbs = slices.DeleteFunc(slices.Clone(list[0].Verbs), func(v string) bool { return v == "deletecollection" })
		return list
	})},
	{fault.DiscoveryWithoutNames, discover(func(list []metav1.APIResource) []metav1.APIResource {
		list[0].ShortNames, list[0].Categories = nil, nil
		return list
	})},
}

// negotiated is a fault: what was negotiated is changed.
func negotiated(change func(r *http.Request, e encoding) (encoding, error)) func(*requestBook) {
	return func(b *requestBook) {
		b.mediaNegotiated.Wrap(func(right negotiating) negotiating {
			return func(r *http.Request, watch bool) (encoding, error) {
				e, err := right(r, watch)
				if err != nil {
					return e, err
				}
				return change(r, e)
			}
		})
	}
}

// discover is a fault: discovery says something else of Services.
func discover(change func([]metav1.APIResource) []metav1.APIResource) func(*requestBook) {
	return func(b *requestBook) {
		b.discovered.Wrap(func(right discovering) discovering {
			return func(res *resource) []metav1.APIResource { return change(right(res)) }
		})
	}
}

// What can be wrong with how bodies are read.
var bodyFaults = []requestWrong{
	{fault.AnyMediaIsRead, func(b *requestBook) {
		b.mediaRead.Wrap(func(right func(string, []string) (string, error)) func(string, []string) (string, error) {
			return func(media string, accepted []string) (string, error) {
				read, err := right(media, accepted)
				if err != nil {
					return accepted[0], nil
				}
				return read, nil
			}
		})
	}},
	{fault.MalformedBody500, func(b *requestBook) {
		b.bodyRefused.Replace(func(message string) error { return apierrors.NewInternalError(errors.New(message)) })
	}},
	{fault.TypeMetaUnchecked, func(b *requestBook) {
		b.objectRead.Replace(func(s *Server, res *resource, _ runtime.Decoder, data []byte) (object, error) {
			obj := res.newObject()
			if err := yaml.Unmarshal(data, obj); err != nil {
				return nil, apierrors.NewBadRequest(err.Error())
			}
			res.strategy.defaults(s, obj)
			return obj, nil
		})
	}},
	{fault.UnknownFieldsStored, func(b *requestBook) {
		b.objectRead.Wrap(func(right reading) reading {
			return func(s *Server, res *resource, decoder runtime.Decoder, data []byte) (object, error) {
				obj, err := right(s, res, decoder, data)
				if obj != nil {
					keepUnknown(obj, data)
				}
				return obj, err
			}
		})
	}},
	{fault.URLNameWins, func(b *requestBook) {
		b.nameOfURL.Wrap(func(right identifying) identifying {
			return func(rq *request, obj object) error {
				if obj.GetName() != "" {
					obj.SetName(rq.name)
				}
				return right(rq, obj)
			}
		})
	}},
	{fault.URLNamespaceWins, func(b *requestBook) {
		b.namespaceOfURL.Replace(func(rq *request, obj object) error {
			obj.SetNamespace(rq.namespace)
			return nil
		})
	}},
}

// keepUnknown notes the unknown fields of a body in an annotation of the object that was read from it.
func keepUnknown(obj object, data []byte) {
	strict := codecs().strict[mediaJSON]
	gvk := obj.GetObjectKind().GroupVersionKind()
	if _, _, err := strict.Decode(data, &gvk, nil); err != nil {
		annotations := obj.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations["unknown-fields"] = err.Error()
		obj.SetAnnotations(annotations)
	}
}

// What can be wrong with the parameters of writes.
var parameterFaults = []requestWrong{
	{fault.DryRunAnyValue, func(b *requestBook) { b.dryRunValue.Off() }},
	{fault.ValidationAnyValue, func(b *requestBook) {
		b.validationDefault.Wrap(func(right func(string) string) func(string) string {
			known := b.validationValue.Do
			return func(validation string) string {
				if len(known(validation)) > 0 {
					validation = ""
				}
				return right(validation)
			}
		})
		b.validationValue.Off()
	}},
	{fault.StrictWarns, func(b *requestBook) {
		b.unknownRefused.Off()
		b.unknownWarnedOf.Replace(func(validation string) bool { return validation != metav1.FieldValidationIgnore })
	}},
	{fault.WarnIgnores, func(b *requestBook) { b.unknownWarnedOf.Off() }},
	{fault.IgnoreWarns, func(b *requestBook) {
		b.unknownWarnedOf.Replace(func(validation string) bool { return validation != metav1.FieldValidationStrict })
	}},
}
