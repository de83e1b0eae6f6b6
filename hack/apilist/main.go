// Apilist prints what the packages of the library export: their declarations without bodies and comments, in a fixed order. `make api` keeps it in docs/api.txt,
// where a change of the surface shows in review.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/doc"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	text, err := list(".")
	if err != nil {
		fmt.Fprintln(os.Stderr, "apilist:", err)
		os.Exit(1)
	}
	fmt.Print(text)
}

// list is the listing of all packages below the folders of the library, for Linux.
func list(root string) (string, error) {
	var b strings.Builder
	for _, top := range []string{"framework", "suites"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(dir string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return err
			}
			if d.Name() == "testdata" {
				return filepath.SkipDir
			}
			return describe(&b, root, dir)
		})
		if err != nil {
			return "", err
		}
	}
	return b.String(), nil
}

// describe adds what the package in a folder exports, if there is one and it exports something.
func describe(b *strings.Builder, root, dir string) error {
	system := build.Default
	system.GOOS, system.GOARCH, system.CgoEnabled = "linux", "amd64", false
	found, err := system.ImportDir(dir, 0)
	if none := (*build.NoGoError)(nil); errors.As(err, &none) {
		return nil
	}
	if err != nil {
		return err
	}
	files := token.NewFileSet()
	var parsed []*ast.File
	for _, name := range found.GoFiles {
		f, err := parser.ParseFile(files, filepath.Join(dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		parsed = append(parsed, f)
	}
	relative, err := filepath.Rel(root, dir)
	if err != nil {
		return err
	}
	p, err := doc.NewFromFiles(files, parsed, path.Clean(filepath.ToSlash(relative)))
	if err != nil {
		return err
	}
	var lines []string
	for _, decls := range [][]ast.Decl{declsOf(p.Consts), declsOf(p.Vars), funcsOf(p.Funcs)} {
		for _, d := range decls {
			lines = append(lines, printed(files, d))
		}
	}
	for _, t := range p.Types {
		lines = append(lines, printed(files, t.Decl))
		for _, decls := range [][]ast.Decl{declsOf(t.Consts), declsOf(t.Vars), funcsOf(t.Funcs), funcsOf(t.Methods)} {
			for _, d := range decls {
				lines = append(lines, printed(files, d))
			}
		}
	}
	if len(lines) == 0 {
		return nil
	}
	fmt.Fprintf(b, "# %s\n\n%s\n\n", p.ImportPath, strings.Join(lines, "\n"))
	return nil
}

func declsOf(values []*doc.Value) (decls []ast.Decl) {
	for _, v := range values {
		decls = append(decls, v.Decl)
	}
	return decls
}

func funcsOf(functions []*doc.Func) (decls []ast.Decl) {
	for _, f := range functions {
		decls = append(decls, f.Decl)
	}
	return decls
}

// printed is a declaration as Go source. Values of constants and variables are left out: they are no part of the surface, and generated ones are many.
func printed(files *token.FileSet, d ast.Decl) string {
	if g, ok := d.(*ast.GenDecl); ok && g.Tok != token.TYPE {
		var names []string
		for _, s := range g.Specs {
			for _, n := range s.(*ast.ValueSpec).Names {
				if n.IsExported() {
					names = append(names, n.Name)
				}
			}
		}
		slices.Sort(names)
		return g.Tok.String() + " " + strings.Join(names, ", ")
	}
	var b bytes.Buffer
	if err := (&printer.Config{Mode: printer.UseSpaces | printer.TabIndent, Tabwidth: 8}).Fprint(&b, files, d); err != nil {
		return err.Error()
	}
	return b.String()
}
