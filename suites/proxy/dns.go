package proxy

import (
	"context"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// nameOf is the DNS name of a Service, below the domain of the cluster.
func nameOf(svc *corev1.Service) string { return svc.Name + "." + svc.Namespace + ".svc" }

// portOf is the DNS name of a named port of a Service; protocol is tcp, udp or sctp.
func portOf(svc *corev1.Service, port, protocol string) string {
	return "_" + port + "._" + protocol + "." + nameOf(svc)
}

// addressType is the type of the records that hold addresses of the family.
func addressType(family corev1.IPFamily) candidate.RecordType {
	if family == corev1.IPv6Protocol {
		return candidate.AAAA
	}
	return candidate.A
}

// primaryType is addressType of the primary family.
func primaryType(net *check.Network) candidate.RecordType { return addressType(net.PrimaryFamily()) }

// ofPods demands the addresses of the pods in the primary family.
func ofPods(net *check.Network, pods ...candidate.Pod) check.RecordsWant {
	var addresses []netip.Addr
	for _, p := range pods {
		addresses = append(addresses, check.AddressOf(p.Addresses, net.PrimaryFamily()))
	}
	return check.ResolvesTo(addresses...)
}

// named asks for the addresses of a Service in the primary family, and demands its virtual address.
func named(net *check.Network, svc *corev1.Service) check.Lookup {
	ginkgo.GinkgoHelper()
	return check.Ask(primaryType(net), nameOf(svc), check.ResolvesTo(check.ServiceAddress(svc, exposedPort).Addr()))
}

// missBound is how long a name may stay unknown to those that asked too early, and an address keep its former name. DNS servers of clusters remember both for 30 s at most.
const missBound = check.ConvergenceBound + 15*time.Second

var _ = ginkgo.Describe("the DNS name of a Service", func() {
	check.It(spec.ProxyDNSClusterIP, "resolves to its virtual address for as long as it has that",
		func(ctx context.Context, net *check.Network) {
			net.Backends(ctx, "app", net.Node(0), net.Node(1))
			app, ports, empty := net.Expose(ctx, exposed("app")), net.Expose(ctx, exposed("ports", onNodePorts())), exposeSelectorless(ctx, net, "empty")
			net.ExpectRecords(ctx, "Services are created", named(net, app), named(net, ports), named(net, empty))
			net.Unexpose(ctx, app.Name)
			net.ExpectRecords(ctx, "a Service is deleted",
				check.Ask(primaryType(net), nameOf(app), check.NoRecords()), named(net, ports), named(net, empty))
			// Its address is taken, so that the next one has another; by somebody else already where this is refused.
			net.Create(ctx, exposed("other", check.WithClusterIP(app.Spec.ClusterIP)))
			net.ExpectRecords(ctx, "a Service of the same name is created", named(net, net.Expose(ctx, exposed("app"))), named(net, ports))
		})

	check.It(spec.ProxyDNSClusterIP, "resolves though it was asked for before there was the Service",
		func(ctx context.Context, net *check.Network) {
			early := check.Service("early", check.With(func(s *corev1.Service) { s.Namespace = net.Namespace() }))
			net.ExpectRecords(ctx, "there is no such Service", check.Ask(primaryType(net), nameOf(early), check.NoRecords()))
			net.ExpectRecordsWithin(ctx, "the Service is created", missBound, named(net, net.Expose(ctx, exposed(early.Name))))
		})

	check.It(spec.ProxyDNSSrvPort, "leads to its ports by SRV records of their names and protocols",
		func(ctx context.Context, net *check.Network) {
			web := check.Port("web", corev1.ProtocolTCP, 80, check.BackendPort)
			svc := net.Expose(ctx, check.Service("app", check.WithPorts(web, check.Port("log", corev1.ProtocolUDP, 514, check.BackendPort))))
			leads := func(port, protocol string, number int) check.Lookup {
				return check.Ask(candidate.SRV, portOf(svc, port, protocol), check.LeadsTo(check.Target{Name: nameOf(svc), Port: number}))
			}
			none := func(port, protocol string) check.Lookup {
				return check.Ask(candidate.SRV, portOf(svc, port, protocol), check.NoRecords())
			}
			net.ExpectRecords(ctx, "the Service is created",
				leads("web", "tcp", 80), leads("log", "udp", 514), none("web", "udp"), none("log", "tcp"), none("other", "tcp"))
			net.Change(ctx, svc.Name, `{"spec":{"ports":[{"name":"web","port":81,"targetPort":8080},{"name":"other","port":80,"targetPort":8081}]}}`)
			net.ExpectRecords(ctx, "its ports are changed", leads("web", "tcp", 81), leads("other", "tcp", 80), none("web", "udp"))
		})

	check.It(spec.ProxyDNSUnnamedPort, "does not lead to a port without a name",
		func(ctx context.Context, net *check.Network) {
			unnamed := check.WithPorts(check.Port("", corev1.ProtocolTCP, exposedPort, check.BackendPort))
			pods := net.Backends(ctx, "app", net.Node(0))
			svc := net.Expose(ctx, check.Service("one", unnamed))
			ofPods := net.Expose(ctx, check.Service("headless", unnamed, check.Headless(), selecting("app")))
			// That there are SRV records at all shows at a port with a name.
			control := net.Expose(ctx, exposed("control"))
			lookups := []check.Lookup{named(net, svc), resolving(net, ofPods, pods...),
				check.Ask(candidate.SRV, portOf(control, "tcp", "tcp"), check.LeadsTo(check.Target{Name: nameOf(control), Port: exposedPort}))}
			for _, s := range []*corev1.Service{svc, ofPods} {
				for _, port := range []string{strconv.Itoa(exposedPort), strconv.Itoa(check.BackendPort), "tcp", "http"} {
					lookups = append(lookups, check.Ask(candidate.SRV, portOf(s, port, "tcp"), check.NoRecords()))
				}
			}
			net.ExpectRecords(ctx, "Services are created", lookups...)
		})

	check.It(spec.ProxyDNSCaseInsensitive, "is found in upper and lower case, as are those of ports and endpoints",
		func(ctx context.Context, net *check.Network) {
			pod := hosted(ctx, net, 0, "pets", "web-0")
			app, pets := net.Expose(ctx, exposed("app")), net.Expose(ctx, headless("pets"))
			alias := net.Expose(ctx, check.Service("alias", check.ExternalName(externalHost)))
			net.ExpectRecords(ctx, "Services are created", named(net, app), resolving(net, pets, pod), aliases(alias, externalHost+".")[0])
			of := func(l check.Lookup, name string) check.Lookup { return check.Ask(l.Type, name, l.Want) }
			leads := check.LeadsTo(check.Target{Name: nameOf(app), Port: exposedPort})
			net.ExpectRecords(ctx, "they are asked for in other letters",
				of(named(net, app), strings.ToUpper(nameOf(app))), of(named(net, app), "App."+app.Namespace+".Svc"),
				of(resolving(net, pets, pod), strings.ToUpper(nameOf(pets))), check.Ask(primaryType(net), "Web-0."+nameOf(pets), ofPods(net, pod)),
				of(aliases(alias, externalHost+".")[0], strings.ToUpper(nameOf(alias))),
				check.Ask(candidate.SRV, strings.ToUpper(portOf(app, "tcp", "tcp")), leads))
		})

	check.It(spec.ProxyDNSSchemaVersion, "is of a schema whose version the DNS tells",
		func(ctx context.Context, net *check.Network) {
			net.ExpectRecords(ctx, "the version is asked for", check.Ask(candidate.TXT, "dns-version", check.SemanticVersion()))
		})

	check.It(spec.ProxyDNSDualStack, "resolves to the virtual address of each family that it has", check.DualStack(),
		func(ctx context.Context, net *check.Network) {
			primary, other := net.PrimaryFamily(), net.OtherFamily()
			dual, single := net.Expose(ctx, exposed("dual", inBothFamilies())), net.Expose(ctx, exposed("single"))
			second := net.Expose(ctx, exposed("second", check.WithFamilies(other)))
			in := func(svc *corev1.Service, family corev1.IPFamily) check.Lookup {
				return check.Ask(addressType(family), nameOf(svc), check.ResolvesTo(atFamily(svc, family).Addr()))
			}
			without := func(svc *corev1.Service, family corev1.IPFamily) check.Lookup {
				return check.Ask(addressType(family), nameOf(svc), check.NoRecords())
			}
			net.ExpectRecords(ctx, "Services are created",
				in(dual, primary), in(dual, other), in(single, primary), without(single, other), without(second, primary), in(second, other))
			single = net.Change(ctx, single.Name, `{"spec":{"ipFamilyPolicy":"RequireDualStack"}}`)
			net.ExpectRecords(ctx, "a Service becomes dual stack", in(single, primary), in(single, other))
			net.Change(ctx, single.Name, `{"spec":{"ipFamilyPolicy":"SingleStack","clusterIPs":null,"ipFamilies":null}}`)
			net.ExpectRecords(ctx, "it becomes single stack again", in(single, primary), without(single, other), in(dual, other))
		})

	check.It(spec.ProxyDNSNameLeadingDigit, "may begin with a digit",
		func(ctx context.Context, net *check.Network) {
			pods := net.Backends(ctx, "app", net.Node(0), net.Node(1))
			var lookups []check.Lookup
			for _, name := range []string{"1", "0abc", "9-9"} {
				svc := net.Expose(ctx, exposed(name))
				lookups = append(lookups, named(net, svc),
					check.Ask(candidate.SRV, portOf(svc, "tcp", "tcp"), check.LeadsTo(check.Target{Name: nameOf(svc), Port: exposedPort})))
			}
			headless := net.Expose(ctx, exposed("2headless", check.Headless(), selecting("app")))
			lookups = append(lookups, check.Ask(primaryType(net), nameOf(headless), ofPods(net, pods...)))
			alias := net.Expose(ctx, check.Service("3alias", check.ExternalName(externalHost)))
			lookups = append(lookups, check.Ask(candidate.CNAME, nameOf(alias), check.AliasFor(externalHost+".")))
			net.ExpectRecords(ctx, "Services are created", lookups...)
		})
})
