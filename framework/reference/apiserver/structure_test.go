package apiserver

import (
	"bytes"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"k8s.io/client-go/applyconfigurations"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
)

var rewrite = flag.Bool("write", false, "write structure.yaml")

// TestStructureIsThatOfClientGo demands that the structure of the served kinds is the one that client-go knows, and no other.
func TestStructureIsThatOfClientGo(t *testing.T) {
	example := namespaces.newObject()
	example.GetObjectKind().SetGroupVersionKind(namespaces.gvk)
	all, err := applyconfigurations.NewTypeConverter(codecs().scheme).ObjectToTyped(example)
	if err != nil {
		t.Fatal(err)
	}
	published := map[string]bool{}
	for _, gv := range groupVersions {
		for name := range buildOpenAPI(gv).Components.Schemas {
			published[name] = true
		}
	}
	var served schema.Schema
	for _, definition := range all.Schema().Types {
		if published[definition.Name] || strings.HasPrefix(definition.Name, "__untyped") {
			served.Types = append(served.Types, definition)
		}
	}
	for _, definition := range served.Types {
		eachReference(definition.Atom, func(name string) {
			if !slices.ContainsFunc(served.Types, func(d schema.TypeDef) bool { return d.Name == name }) {
				t.Errorf("%s refers to %s, which is missing", definition.Name, name)
			}
		})
	}
	text := bytes.NewBufferString("# Written by go generate from client-go. Do not edit.\n")
	encoder := yaml.NewEncoder(text)
	encoder.SetIndent(2)
	if err := encoder.Encode(&served); err != nil {
		t.Fatal(err)
	}
	if *rewrite {
		if err := os.WriteFile("structure.yaml", text.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if text.String() != structure {
		t.Error("structure.yaml is stale: run go generate ./framework/reference/apiserver")
	}
}

// eachReference calls found with the name of each type that a definition refers to.
func eachReference(a schema.Atom, found func(name string)) {
	visit := func(to schema.TypeRef) {
		if to.NamedType != nil {
			found(*to.NamedType)
		}
		eachReference(to.Inlined, found)
	}
	if a.List != nil {
		visit(a.List.ElementType)
	}
	if a.Map != nil {
		visit(a.Map.ElementType)
		for _, f := range a.Map.Fields {
			visit(f.Type)
		}
	}
}
