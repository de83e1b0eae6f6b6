package apischema

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// openAPISchema is the part of a schema that is judged.
type openAPISchema struct {
	Type                 string                   `json:"type"`
	Format               string                   `json:"format"`
	Ref                  string                   `json:"$ref"`
	AllOf                []openAPISchema          `json:"allOf"`
	Items                *openAPISchema           `json:"items"`
	AdditionalProperties *openAPISchema           `json:"additionalProperties"`
	Properties           map[string]openAPISchema `json:"properties"`
	Required             []string                 `json:"required"`
	Enum                 []any                    `json:"enum"`
	Default              any                      `json:"default"`
	ListType             string                   `json:"x-kubernetes-list-type"`
	ListMapKeys          []string                 `json:"x-kubernetes-list-map-keys"`
	MapType              string                   `json:"x-kubernetes-map-type"`
	PatchStrategy        string                   `json:"x-kubernetes-patch-strategy"`
	PatchMergeKey        string                   `json:"x-kubernetes-patch-merge-key"`
	Kinds                []struct {
		Group, Version, Kind string
	} `json:"x-kubernetes-group-version-kind"`
}

// kind is the type of a field in one word: string, integer/int32, []string or map[string]string. Otherwise it is the
// last part of the name of the schema that it refers to.
func (s *openAPISchema) kind() string {
	switch {
	case s.Ref != "":
		return s.Ref[strings.LastIndexAny(s.Ref, "./")+1:]
	case len(s.AllOf) > 0:
		return s.AllOf[0].kind()
	case s.Type == "array" && s.Items != nil:
		return "[]" + s.Items.kind()
	case s.Type == "object" && s.AdditionalProperties != nil:
		return "map[string]" + s.AdditionalProperties.kind()
	case s.Format != "":
		return s.Type + "/" + s.Format
	}
	return s.Type
}

// openAPI returns the schemas of api/v1, from the path that the server lists for it.
func openAPI(ctx context.Context, cp *check.ControlPlane) map[string]openAPISchema {
	ginkgo.GinkgoHelper()
	a := cp.Do(ctx, http.MethodGet, "/openapi/v3", "", nil)
	Expect(a).To(check.BeAccepted())
	var index struct {
		Paths map[string]struct{ ServerRelativeURL string }
	}
	Expect(json.Unmarshal(a.Body, &index)).To(Succeed())
	Expect(index.Paths).To(HaveKey("api/v1"))
	location, err := url.Parse(index.Paths["api/v1"].ServerRelativeURL)
	Expect(err).NotTo(HaveOccurred())
	a = cp.Do(ctx, http.MethodGet, path.Clean(location.Path), "", nil, check.Query("hash", location.Query().Get("hash")))
	Expect(a).To(check.BeAccepted())
	var document struct {
		Components struct{ Schemas map[string]openAPISchema }
	}
	Expect(json.Unmarshal(a.Body, &document)).To(Succeed())
	return document.Components.Schemas
}

// openAPIOf returns the schema of a type of the group core.
func openAPIOf(schemas map[string]openAPISchema, name string) openAPISchema {
	ginkgo.GinkgoHelper()
	Expect(schemas).To(HaveKey("io.k8s.api.core.v1."+name), "the schema of %s", name)
	return schemas["io.k8s.api.core.v1."+name]
}

// openAPIFields are the fields of the Service v1 API reference.
var openAPIFields = map[string]map[string]string{
	"Service": {"apiVersion": "string", "kind": "string", "metadata": "ObjectMeta", "spec": "ServiceSpec", "status": "ServiceStatus"},
	"ServiceSpec": {
		"allocateLoadBalancerNodePorts": "boolean", "clusterIP": "string", "clusterIPs": "[]string", "externalIPs": "[]string", "externalName": "string",
		"externalTrafficPolicy": "string", "healthCheckNodePort": "integer/int32", "internalTrafficPolicy": "string", "ipFamilies": "[]string",
		"ipFamilyPolicy": "string", "loadBalancerClass": "string", "loadBalancerIP": "string", "loadBalancerSourceRanges": "[]string",
		"ports": "[]ServicePort", "publishNotReadyAddresses": "boolean", "selector": "map[string]string", "sessionAffinity": "string",
		"sessionAffinityConfig": "SessionAffinityConfig", "type": "string",
	},
	"ServicePort": {
		"appProtocol": "string", "name": "string", "nodePort": "integer/int32", "port": "integer/int32", "protocol": "string", "targetPort": "IntOrString",
	},
	"SessionAffinityConfig": {"clientIP": "ClientIPConfig"},
	"ClientIPConfig":        {"timeoutSeconds": "integer/int32"},
	"ServiceStatus":         {"conditions": "[]Condition", "loadBalancer": "LoadBalancerStatus"},
	"LoadBalancerStatus":    {"ingress": "[]LoadBalancerIngress"},
	"LoadBalancerIngress":   {"hostname": "string", "ip": "string", "ports": "[]PortStatus"},
	"PortStatus":            {"error": "string", "port": "integer/int32", "protocol": "string"},
}

var _ = ginkgo.Describe("the schema", func() {
	check.It(spec.APIOpenapiPublished, "of Service is published",
		func(ctx context.Context, cp *check.ControlPlane) {
			Expect(openAPIOf(openAPI(ctx, cp), "Service").Kinds).To(ContainElement(And(
				HaveField("Group", ""), HaveField("Version", "v1"), HaveField("Kind", "Service"))))
		})

	check.It(spec.APIOpenapiIPMode, "has the mode of ingress points",
		func(ctx context.Context, cp *check.ControlPlane) {
			properties := openAPIOf(openAPI(ctx, cp), "LoadBalancerIngress").Properties
			Expect(properties).To(HaveKey("ipMode"))
			mode := properties["ipMode"]
			Expect(mode.kind()).To(Equal("string"))
		})

	check.It(spec.APIOpenapiFields, "has every field with its type",
		func(ctx context.Context, cp *check.ControlPlane) {
			schemas := openAPI(ctx, cp)
			for name, fields := range openAPIFields {
				schema := openAPIOf(schemas, name)
				for field, kind := range fields {
					Expect(schema.Properties).To(HaveKey(field), "%s.%s", name, field)
					property := schema.Properties[field]
					Expect(property.kind()).To(Equal(kind), "%s.%s", name, field)
				}
			}
		})

	check.It(spec.APIOpenapiRequired, "says what is required",
		func(ctx context.Context, cp *check.ControlPlane) {
			schemas := openAPI(ctx, cp)
			Expect(openAPIOf(schemas, "ServicePort").Required).To(ConsistOf("port"))
			Expect(openAPIOf(schemas, "PortStatus").Required).To(ConsistOf("port", "protocol"))
			for _, name := range []string{"Service", "ServiceSpec", "ServiceStatus", "LoadBalancerIngress"} {
				Expect(openAPIOf(schemas, name).Required).To(BeEmpty(), "%s", name)
			}
		})

	check.It(spec.APIOpenapiListTypes, "says which lists are maps and which are atomic",
		func(ctx context.Context, cp *check.ControlPlane) {
			schemas := openAPI(ctx, cp)
			service, status := openAPIOf(schemas, "ServiceSpec"), openAPIOf(schemas, "ServiceStatus")
			Expect(service.Properties["ports"]).To(And(HaveField("ListType", "map"), HaveField("ListMapKeys", ConsistOf("port", "protocol"))))
			Expect(status.Properties["conditions"]).To(And(HaveField("ListType", "map"), HaveField("ListMapKeys", ConsistOf("type"))))
			atomic := []string{"clusterIPs", "ipFamilies"}
			if cp.OfVersion(">=1.30") {
				atomic = append(atomic, "externalIPs", "loadBalancerSourceRanges")
				Expect(openAPIOf(schemas, "LoadBalancerStatus").Properties["ingress"]).To(HaveField("ListType", "atomic"))
			}
			for _, field := range atomic {
				Expect(service.Properties[field]).To(HaveField("ListType", "atomic"), "%s", field)
			}
			Expect(service.Properties["selector"]).To(HaveField("MapType", "atomic"))
			Expect(openAPIOf(schemas, "LoadBalancerIngress").Properties["ports"]).To(HaveField("ListType", "atomic"))
		})

	check.It(spec.APIOpenapiPatchStrategy, "says what a strategic merge patch merges",
		func(ctx context.Context, cp *check.ControlPlane) {
			schemas := openAPI(ctx, cp)
			Expect(openAPIOf(schemas, "ServiceSpec").Properties["ports"]).To(And(HaveField("PatchStrategy", "merge"), HaveField("PatchMergeKey", "port")))
			Expect(openAPIOf(schemas, "ServiceStatus").Properties["conditions"]).To(And(HaveField("PatchStrategy", "merge"), HaveField("PatchMergeKey", "type")))
		})

	check.It(spec.APIOpenapiEnums, "lists the values of fields that have few",
		func(ctx context.Context, cp *check.ControlPlane) {
			schemas := openAPI(ctx, cp)
			for field, values := range map[string][]any{
				"type":                  {"ClusterIP", "NodePort", "LoadBalancer", "ExternalName"},
				"sessionAffinity":       {"None", "ClientIP"},
				"externalTrafficPolicy": {"Cluster", "Local"},
				"internalTrafficPolicy": {"Cluster", "Local"},
				"ipFamilyPolicy":        {"SingleStack", "PreferDualStack", "RequireDualStack"},
			} {
				Expect(openAPIOf(schemas, "ServiceSpec").Properties[field]).To(HaveField("Enum", ContainElements(values...)), "%s", field)
			}
			Expect(openAPIOf(schemas, "ServicePort").Properties["protocol"]).To(HaveField("Enum", ContainElements("TCP", "UDP", "SCTP")))
		})

	check.It(spec.APIOpenapiDefaults, "says that a port is TCP by default",
		func(ctx context.Context, cp *check.ControlPlane) {
			Expect(openAPIOf(openAPI(ctx, cp), "ServicePort").Properties["protocol"]).To(HaveField("Default", "TCP"))
		})
})
