package apiserver

import (
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
)

// schemaBuilder makes OpenAPI schemas from Go types. Names, fields, defaults and patch strategies come from the types
// and their tags, descriptions from their SwaggerDoc. List and map types come from the schema of server-side apply.
type schemaBuilder struct {
	merge   *schema.Schema // nil if there is none
	schemas map[string]*spec.Schema
}

// enumerations are the values of the types of Services that have few (KEP-2887). The Go types do not tell.
var enumerations = map[reflect.Type][]any{
	reflect.TypeFor[corev1.ServiceType]():                  {corev1.ServiceTypeClusterIP, corev1.ServiceTypeExternalName, corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeNodePort},
	reflect.TypeFor[corev1.ServiceAffinity]():              {corev1.ServiceAffinityClientIP, corev1.ServiceAffinityNone},
	reflect.TypeFor[corev1.ServiceExternalTrafficPolicy](): {corev1.ServiceExternalTrafficPolicyCluster, corev1.ServiceExternalTrafficPolicyLocal},
	reflect.TypeFor[corev1.ServiceInternalTrafficPolicy](): {corev1.ServiceInternalTrafficPolicyCluster, corev1.ServiceInternalTrafficPolicyLocal},
	reflect.TypeFor[corev1.IPFamily]():                     {corev1.IPFamilyUnknown, corev1.IPv4Protocol, corev1.IPv6Protocol},
	reflect.TypeFor[corev1.IPFamilyPolicy]():               {corev1.IPFamilyPolicyPreferDualStack, corev1.IPFamilyPolicyRequireDualStack, corev1.IPFamilyPolicySingleStack},
	reflect.TypeFor[corev1.Protocol]():                     {corev1.ProtocolSCTP, corev1.ProtocolTCP, corev1.ProtocolUDP},
}

const schemaReference = "#/components/schemas/"

// add makes the schema of a struct type, and of all that it refers to, and returns its name.
func (b *schemaBuilder) add(t reflect.Type) string {
	name := modelName(t)
	if _, done := b.schemas[name]; done {
		return name
	}
	s := &spec.Schema{}
	b.schemas[name] = s // before the fields: types may be recursive
	zero := reflect.Zero(t).Interface()
	var docs map[string]string
	if d, ok := zero.(documented); ok {
		docs = d.SwaggerDoc()
	}
	s.Description = docs[""]
	if typed, ok := zero.(schemaTyped); ok {
		s.Type = typed.OpenAPISchemaType()
		if f, ok := zero.(schemaFormated); ok {
			s.Format = f.OpenAPISchemaFormat()
		}
		if s.Format == "int-or-string" {
			s.Type = nil
			s.OneOf = []spec.Schema{{SchemaProps: spec.SchemaProps{Type: []string{"integer"}}}, {SchemaProps: spec.SchemaProps{Type: []string{"string"}}}}
		}
		return name
	}
	s.Type = []string{"object"}
	if isFreeForm(t) {
		return name
	}
	s.Properties = map[string]spec.Schema{}
	b.addFields(s, t, docs, b.mergeFields(name))
	if m := b.mergeMap(name); m != nil && m.ElementRelationship == schema.Atomic {
		s.AddExtension("x-kubernetes-map-type", "atomic")
	}
	return name
}

func (b *schemaBuilder) addFields(s *spec.Schema, t reflect.Type, docs map[string]string, merge map[string]schema.StructField) {
	for f := range t.Fields() {
		tag, options, encoded := jsonField(f)
		if !encoded {
			continue
		}
		if tag == "" {
			embedded := f.Type
			if d, ok := reflect.TypeAssert[documented](reflect.Zero(embedded)); ok {
				b.addFields(s, embedded, d.SwaggerDoc(), merge)
			} else {
				b.addFields(s, embedded, nil, merge)
			}
			continue
		}
		p := b.property(f.Type)
		p.Description = docs[tag]
		if strategy := f.Tag.Get("patchStrategy"); strategy != "" {
			p.AddExtension("x-kubernetes-patch-strategy", strategy)
		}
		if key := f.Tag.Get("patchMergeKey"); key != "" {
			p.AddExtension("x-kubernetes-patch-merge-key", key)
		}
		if m, ok := merge[tag]; ok {
			describeMerge(&p, m)
		}
		if f.Type.Kind() != reflect.Pointer && !strings.Contains(options, "omitempty") && !strings.Contains(options, "omitzero") {
			s.Required = append(s.Required, tag)
		}
		s.Properties[tag] = p
	}
}

// property makes the schema of a field's type.
func (b *schemaBuilder) property(t reflect.Type) (s spec.Schema) {
	switch t.Kind() {
	case reflect.Pointer:
		return b.property(t.Elem())
	case reflect.Struct:
		reference := spec.MustCreateRef(schemaReference + b.add(t))
		// A description beside a $ref is ignored by readers of OpenAPI 3.0, so the reference is wrapped.
		s.AllOf = []spec.Schema{{SchemaProps: spec.SchemaProps{Ref: reference}}}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			s.Type, s.Format = []string{"string"}, "byte"
			return s
		}
		items := b.property(t.Elem())
		s.Type, s.Items = []string{"array"}, &spec.SchemaOrArray{Schema: &items}
	case reflect.Map:
		values := b.property(t.Elem())
		s.Type, s.AdditionalProperties = []string{"object"}, &spec.SchemaOrBool{Allows: true, Schema: &values}
	case reflect.String:
		s.Type, s.Enum = []string{"string"}, enumerations[t]
	case reflect.Bool:
		s.Type = []string{"boolean"}
	case reflect.Int32, reflect.Int16, reflect.Int8, reflect.Uint32:
		s.Type, s.Format = []string{"integer"}, "int32"
	case reflect.Int, reflect.Int64, reflect.Uint64:
		s.Type, s.Format = []string{"integer"}, "int64"
	case reflect.Float32, reflect.Float64:
		s.Type, s.Format = []string{"number"}, "double"
	default:
		s.Type = []string{"object"}
	}
	return s
}

func (b *schemaBuilder) mergeMap(name string) *schema.Map {
	if b.merge == nil {
		return nil
	}
	d, ok := b.merge.FindNamedType(name)
	if !ok {
		return nil
	}
	return d.Map
}

func (b *schemaBuilder) mergeFields(name string) map[string]schema.StructField {
	m := b.mergeMap(name)
	if m == nil {
		return nil
	}
	fields := make(map[string]schema.StructField, len(m.Fields))
	for _, f := range m.Fields {
		fields[f.Name] = f
	}
	return fields
}

// describeMerge adds how server-side apply merges a field, and its default.
func describeMerge(s *spec.Schema, f schema.StructField) {
	if f.Default != nil {
		s.Default = f.Default
	}
	if list := f.Type.Inlined.List; list != nil {
		switch {
		case list.ElementRelationship == schema.Atomic:
			s.AddExtension("x-kubernetes-list-type", "atomic")
		case len(list.Keys) > 0:
			keys := make([]any, len(list.Keys))
			for i, k := range list.Keys {
				keys[i] = k
			}
			s.AddExtension("x-kubernetes-list-type", "map")
			s.AddExtension("x-kubernetes-list-map-keys", keys)
		default:
			s.AddExtension("x-kubernetes-list-type", "set")
		}
	}
	if m := f.Type.Inlined.Map; m != nil && m.ElementRelationship == schema.Atomic {
		s.AddExtension("x-kubernetes-map-type", "atomic")
	}
}
