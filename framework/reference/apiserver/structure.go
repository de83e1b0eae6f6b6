package apiserver

import (
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
)

// structureRoots are the types that structure begins with: those of the served kinds, and that of the only other body
// whose fields the documents of OpenAPI describe.
func structureRoots() []reflect.Type {
	roots := []reflect.Type{reflect.TypeFor[metav1.DeleteOptions]()}
	for _, res := range resources {
		roots = append(roots, reflect.TypeOf(res.newObject()).Elem())
	}
	return roots
}

// structure describes to server-side apply the types of the served kinds, and all that they refer to. It leaves out
// unions, which structured-merge-diff does not read.
func structure() []schema.TypeDef {
	b := structureBuilder{types: map[string]schema.Atom{}}
	for _, t := range structureRoots() {
		b.add(t)
	}
	b.types[untypedAtomic] = anyValue(untypedAtomic, schema.Atomic)
	b.types[untypedDeduced] = anyValue(untypedDeduced, schema.Separable)
	definitions := make([]schema.TypeDef, 0, len(b.types))
	for name, atom := range b.types {
		definitions = append(definitions, schema.TypeDef{Name: name, Atom: atom})
	}
	return definitions
}

// The names that structured-merge-diff gives to values of no known type: of those of the first nobody owns a part, of
// those of the second the fields have owners.
const (
	untypedAtomic  = "__untyped_atomic_"
	untypedDeduced = "__untyped_deduced_"
)

// anyValue is a scalar, a list that is one value, or a map of the elements and the relationship given.
func anyValue(elements string, relationship schema.ElementRelationship) schema.Atom {
	atomic := untypedAtomic
	return schema.Atom{
		Scalar: new(schema.Untyped),
		List:   &schema.List{ElementType: schema.TypeRef{NamedType: &atomic}, ElementRelationship: schema.Atomic},
		Map:    &schema.Map{ElementType: schema.TypeRef{NamedType: &elements}, ElementRelationship: relationship},
	}
}

// structureBuilder makes descriptions for server-side apply from Go types. Names and fields come from the types and
// their tags, as do the lists that a strategic merge patch merges. What the types do not tell is in structurerules.go.
type structureBuilder struct {
	types map[string]schema.Atom
}

// add describes a struct type, and all that it refers to, and returns its name.
func (b structureBuilder) add(t reflect.Type) string {
	name := modelName(t)
	if _, done := b.types[name]; done {
		return name
	}
	switch {
	case isScalar(t):
		b.types[name] = schema.Atom{Scalar: new(schema.Untyped)}
	case isFreeForm(t):
		b.types[name] = schema.Atom{Map: &schema.Map{ElementType: schema.TypeRef{Inlined: anyValue(untypedDeduced, schema.Separable)}}}
	default:
		m := &schema.Map{}
		b.types[name] = schema.Atom{Map: m} // before the fields: types may be recursive
		if slices.Contains(atomicStructs, t) {
			m.ElementRelationship = schema.Atomic
		}
		b.addFields(m, t)
	}
	return name
}

func (b structureBuilder) addFields(m *schema.Map, t reflect.Type) {
	for f := range t.Fields() {
		name, options, encoded := jsonField(f)
		switch {
		case !encoded:
		case name == "":
			b.addFields(m, f.Type)
		default:
			m.Fields = append(m.Fields, schema.StructField{Name: name, Type: b.field(t, f, name), Default: defaultOf(t, f, name, options)})
		}
	}
}

// field describes a field of the type given.
func (b structureBuilder) field(of reflect.Type, f reflect.StructField, name string) schema.TypeRef {
	ref := b.reference(f.Type)
	rule, ruled := mergeRules[of][name]
	if list := ref.Inlined.List; list != nil {
		if !ruled {
			rule = patchRule(f)
		}
		list.ElementRelationship, list.Keys = rule.relationship, rule.keys
	}
	if m := ref.Inlined.Map; m != nil {
		m.ElementRelationship = rule.relationship
	}
	return ref
}

// patchRule is the rule of a list that only its tags tell of: what a strategic merge patch merges, apply does too.
func patchRule(f reflect.StructField) mergeRule {
	if !slices.Contains(strings.Split(f.Tag.Get("patchStrategy"), ","), "merge") {
		return asOne
	}
	if key := f.Tag.Get("patchMergeKey"); key != "" {
		return byKeys(key)
	}
	return asSet
}

// reference describes the type of a field, or of the elements of a list or map.
func (b structureBuilder) reference(t reflect.Type) schema.TypeRef {
	switch t.Kind() {
	case reflect.Pointer:
		return b.reference(t.Elem())
	case reflect.Struct:
		name := b.add(t)
		return schema.TypeRef{NamedType: &name}
	case reflect.Slice:
		if t.Elem().Kind() != reflect.Uint8 { // bytes are a string
			return schema.TypeRef{Inlined: schema.Atom{List: &schema.List{ElementType: b.reference(t.Elem()), ElementRelationship: schema.Atomic}}}
		}
	case reflect.Map:
		return schema.TypeRef{Inlined: schema.Atom{Map: &schema.Map{ElementType: b.reference(t.Elem())}}}
	case reflect.Bool:
		return schema.TypeRef{Inlined: schema.Atom{Scalar: new(schema.Boolean)}}
	case reflect.String:
	default:
		return schema.TypeRef{Inlined: schema.Atom{Scalar: new(schema.Numeric)}}
	}
	return schema.TypeRef{Inlined: schema.Atom{Scalar: new(schema.String)}}
}

// defaultOf is the default of a field of the type given: that of the table or else, if an encoded object always has the
// field, the zero. Without it apply would not find the element of a list whose key is the zero when a client leaves the
// key out.
func defaultOf(of reflect.Type, f reflect.StructField, name, options string) any {
	if value, ok := fieldDefaults[of][name]; ok {
		return value
	}
	kind := f.Type.Kind()
	if kind == reflect.Struct && !isScalar(f.Type) && !isFreeForm(f.Type) {
		return map[string]any{}
	}
	if strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero") {
		return nil
	}
	switch kind {
	case reflect.String:
		return ""
	case reflect.Bool:
		return false
	case reflect.Int, reflect.Int32, reflect.Int64:
		return 0
	}
	return nil
}
