package apiserver

import (
	"context"
	"encoding/json"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/openapi3"
	"k8s.io/client-go/rest"
	"k8s.io/kube-openapi/pkg/spec3"
)

func TestDiscovery(t *testing.T) {
	g := NewWithT(t)
	s := startServer(t, Options{})
	for name, legacy := range map[string]bool{"aggregated": false, "classic": true} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			d := discovery.NewDiscoveryClientForConfigOrDie(&rest.Config{Host: s.URL()})
			d.UseLegacyDiscovery = legacy
			_, lists, err := d.ServerGroupsAndResources()
			g.Expect(err).NotTo(HaveOccurred())
			found := map[string][]string{}
			for _, list := range lists {
				for _, r := range list.APIResources {
					found[list.GroupVersion] = append(found[list.GroupVersion], r.Name)
				}
			}
			g.Expect(found).To(HaveKeyWithValue("v1", ContainElements("services", "services/status", "services/proxy", "namespaces", "namespaces/finalize",
				"pods", "nodes", "endpoints", "events")))
			g.Expect(found).To(HaveKeyWithValue("discovery.k8s.io/v1", ConsistOf("endpointslices")))
			g.Expect(found).To(HaveKeyWithValue("networking.k8s.io/v1", ConsistOf("servicecidrs", "servicecidrs/status", "ipaddresses")))
		})
	}
	resp, _ := send(t, s, "GET", "/apis/networking.k8s.io", "", "")
	g.Expect(resp.StatusCode).To(Equal(200))
	_, body := send(t, s, "GET", "/", "", "")
	g.Expect(body).To(ContainSubstring("/openapi/v3"))
}

func TestOpenAPIDescribesHowServicesAreMerged(t *testing.T) {
	g := NewWithT(t)
	s := startServer(t, Options{})
	root := openapi3.NewRoot(discovery.NewDiscoveryClientForConfigOrDie(&rest.Config{Host: s.URL()}).OpenAPIV3())
	gvs, err := root.GroupVersions()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(gvs).To(ConsistOf(groupVersions))
	doc, err := root.GVSpec(schema.GroupVersion{Version: "v1"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(doc.Paths.Paths).To(HaveKey("/api/v1/namespaces/{namespace}/services/{name}/status"))
	g.Expect(doc.Paths.Paths["/api/v1/namespaces/{namespace}/services/{name}"].Patch.Parameters).To(ContainElement(
		HaveField("ParameterProps.Name", "fieldValidation")), "kubectl looks here before it asks for server-side validation")
	ports := doc.Components.Schemas["io.k8s.api.core.v1.ServiceSpec"].Properties["ports"]
	g.Expect(ports.Extensions).To(And(
		HaveKeyWithValue("x-kubernetes-patch-strategy", "merge"),
		HaveKeyWithValue("x-kubernetes-patch-merge-key", "port"),
		HaveKeyWithValue("x-kubernetes-list-type", "map"),
		HaveKeyWithValue("x-kubernetes-list-map-keys", ConsistOf("port", "protocol")),
	))
	port := doc.Components.Schemas["io.k8s.api.core.v1.ServicePort"]
	g.Expect(port.Required).To(ConsistOf("port"))
	g.Expect(port.Properties["protocol"].Default).To(Equal("TCP"))
	g.Expect(port.Properties["nodePort"].Description).NotTo(BeEmpty())
	for name, schema := range doc.Components.Schemas {
		for field, p := range schema.Properties {
			for _, reference := range p.AllOf {
				target := reference.Ref.String()[len(schemaReference):]
				g.Expect(doc.Components.Schemas).To(HaveKey(target), "%s.%s", name, field)
			}
		}
	}
	data, err := json.Marshal(doc)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(json.Unmarshal(data, &spec3.OpenAPI{})).To(Succeed())

	resp, _ := send(t, s, "GET", "/openapi/v3/api/v1", "", "")
	resp, _, err = trySend(t.Context(), s, "GET", "/openapi/v3/api/v1", map[string]string{"If-None-Match": resp.Header.Get("Etag")}, "")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(resp.StatusCode).To(Equal(304))
}

func TestTableHasTheColumnsThatPeopleKnow(t *testing.T) {
	g := NewWithT(t)
	s := startServer(t, Options{})
	table := func(path string) (t metav1.Table) {
		_, body, err := trySend(context.Background(), s, "GET", path, map[string]string{"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}, "")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(json.Unmarshal([]byte(body), &t)).To(Succeed(), body)
		return t
	}
	services := table(svcPath)
	names := []string{}
	for _, c := range services.ColumnDefinitions {
		names = append(names, c.Name)
	}
	g.Expect(names).To(Equal([]string{"Name", "Type", "Cluster-IP", "External-IP", "Port(s)", "Age", "Selector"}))
	g.Expect(services.Rows).To(HaveLen(1))
	g.Expect(services.Rows[0].Cells[:5]).To(Equal([]any{"kubernetes", "ClusterIP", "10.96.0.1", "<none>", "443/TCP"}))
	for _, res := range resources {
		path := "/" + openAPIPath(res.groupVersion()) + "/" + res.name
		for _, row := range table(path).Rows {
			g.Expect(row.Cells).To(HaveLen(len(res.columns)), path)
			g.Expect(row.Object.Raw).To(ContainSubstring("PartialObjectMetadata"))
		}
	}
	g.Expect(table(svcPath + "?includeObject=None").Rows[0].Object.Raw).To(BeEmpty())
	g.Expect(table(svcPath + "/kubernetes?includeObject=Object").Rows[0].Object.Raw).To(ContainSubstring("clusterIP"))
}
