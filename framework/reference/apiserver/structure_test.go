package apiserver

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	"k8s.io/client-go/applyconfigurations"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
)

// TestStructureIsThatOfClientGo demands of every type that a served kind can hold that it has the fields, rules and
// defaults that client-go knows. That no type is missing follows: the builder describes each one that it refers to.
// Unions are left out, as structure leaves them out.
func TestStructureIsThatOfClientGo(t *testing.T) {
	example := namespaces.newObject()
	example.GetObjectKind().SetGroupVersionKind(namespaces.gvk)
	all, err := applyconfigurations.NewTypeConverter(codecs().scheme).ObjectToTyped(example)
	if err != nil {
		t.Fatal(err)
	}
	made := structure()
	var known []schema.TypeDef
	for _, definition := range made {
		if k, ok := all.Schema().FindNamedType(definition.Name); ok {
			known = append(known, k)
		}
	}
	got, want := factsOf(made), factsOf(known)
	either := maps.Clone(got)
	maps.Copy(either, want)
	for _, of := range slices.Sorted(maps.Keys(either)) {
		if got[of] != want[of] {
			t.Errorf("%s is %q, but for client-go %q", of, got[of], want[of])
		}
	}
}

// TestStructureRulesAreNeeded demands that without any one rule the structure is another: a rule of a field that is no
// more, or that the types now tell, goes.
func TestStructureRulesAreNeeded(t *testing.T) {
	now := factsOf(structure())
	expectChange := func(without string) {
		t.Helper()
		if maps.Equal(now, factsOf(structure())) {
			t.Errorf("the structure is the same without the rule of %s", without)
		}
	}
	for of, rules := range mergeRules {
		for name, rule := range maps.Clone(rules) {
			delete(rules, name)
			expectChange(of.String() + "." + name)
			rules[name] = rule
		}
	}
	for of, values := range fieldDefaults {
		for name, value := range maps.Clone(values) {
			delete(values, name)
			expectChange(of.String() + "." + name)
			values[name] = value
		}
	}
	all := atomicStructs
	defer func() { atomicStructs = all }()
	for i, of := range all {
		atomicStructs = slices.Delete(slices.Clone(all), i, i+1)
		expectChange(of.String())
	}
}

// BenchmarkStructure measures what the first apply, or Prepare, waits for.
func BenchmarkStructure(b *testing.B) {
	for b.Loop() {
		structure()
	}
}

// facts say of each type what it is, and of each of its fields, by "type.field".
type facts map[string]string

func factsOf(types []schema.TypeDef) facts {
	all := facts{}
	for _, definition := range types {
		all[definition.Name] = describeAtom(definition.Atom)
		if definition.Map == nil {
			continue
		}
		for _, field := range definition.Map.Fields {
			fact := describeReference(field.Type)
			if value := reflect.ValueOf(field.Default); value.IsValid() {
				fact += fmt.Sprintf(", default %s %v", value.Kind(), value)
			}
			all[definition.Name+"."+field.Name] = fact
		}
	}
	return all
}

func describeReference(r schema.TypeRef) (text string) {
	if r.NamedType != nil {
		text = *r.NamedType
	}
	if r.ElementRelationship != nil {
		text += " made " + string(*r.ElementRelationship)
	}
	return text + describeAtom(r.Inlined)
}

func describeAtom(a schema.Atom) (text string) {
	if a.Scalar != nil {
		text += string(*a.Scalar)
	}
	if a.List != nil {
		text += fmt.Sprintf("(%s list by %s of %s)", a.List.ElementRelationship, a.List.Keys, describeReference(a.List.ElementType))
	}
	if a.Map != nil {
		text += fmt.Sprintf("(%s map of %s)", a.Map.ElementRelationship, describeReference(a.Map.ElementType))
	}
	return text
}
