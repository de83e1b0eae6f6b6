package spec

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"testing"
)

// A stale constant would let a check of a withdrawn requirement compile; a missing one keeps a new requirement from being checked.
func TestIDsAreFresh(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "ids.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var constants []ID
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		literal, ok := spec.Values[0].(*ast.BasicLit)
		if !ok {
			t.Fatalf("%s is not a string constant", spec.Names[0].Name)
		}
		value, err := strconv.Unquote(literal.Value)
		if err != nil {
			t.Fatal(err)
		}
		constants = append(constants, ID(value))
		return false
	})
	var ids []ID
	for _, r := range Default().Requirements {
		ids = append(ids, r.ID)
	}
	for _, id := range ids {
		if !slices.Contains(constants, id) {
			t.Errorf("requirement %s has no constant: run go generate ./framework/spec", id)
		}
	}
	for _, id := range constants {
		if !slices.Contains(ids, id) {
			t.Errorf("the constant of %s is stale: run go generate ./framework/spec", id)
		}
	}
	if !t.Failed() && !slices.Equal(ids, constants) {
		t.Error("ids.go is not in the order of the catalogue: run go generate ./framework/spec")
	}
}
