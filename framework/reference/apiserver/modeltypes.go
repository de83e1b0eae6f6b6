package apiserver

import (
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// What the types of the API can say about themselves.
type (
	modelNamed     interface{ OpenAPIModelName() string }
	schemaTyped    interface{ OpenAPISchemaType() []string }
	schemaFormated interface{ OpenAPISchemaFormat() string }
	documented     interface{ SwaggerDoc() map[string]string }
)

// modelName is the name of a struct type in schemas.
func modelName(t reflect.Type) string {
	if named, ok := reflect.TypeAssert[modelNamed](reflect.Zero(t)); ok {
		return named.OpenAPIModelName()
	}
	return strings.ReplaceAll(t.PkgPath()+"."+t.Name(), "/", ".")
}

// jsonField tells how JSON encodes a field: its name, none if the fields of its type are inlined, and its options.
func jsonField(f reflect.StructField) (name, options string, encoded bool) {
	name, options, _ = strings.Cut(f.Tag.Get("json"), ",")
	return name, options, name != "-" && f.IsExported()
}

// isScalar tells whether JSON encodes a struct type as a string or number.
func isScalar(t reflect.Type) bool {
	return t.Implements(reflect.TypeFor[schemaTyped]())
}

// isFreeForm tells whether a struct type holds any object.
func isFreeForm(t reflect.Type) bool {
	return t == reflect.TypeFor[runtime.RawExtension]() || t == reflect.TypeFor[metav1.FieldsV1]()
}
