import { beforeAll, describe, expect, test } from "bun:test";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";
import { testClientsFolder } from "./end-to-end/clients/support/test-clients-folder.ts";
import { temporaryDirectory } from "./support/process.ts";

const root = join(import.meta.dir, "..");
const chart = "deploy/helm/switchyard";
const programs = join(testClientsFolder, "kubernetes");
const bundled = join(programs, "bin", "helm");
const helm = existsSync(bundled) ? bundled : (Bun.which("helm") ?? undefined);
const missing = helm === undefined ? " (missing: helm)" : "";
const testHelm = helm === undefined ? test.skip : test;

/** An object of Kubernetes, as far as these tests read it. */
interface Manifest {
  kind: string;
  metadata: { name: string };
  spec: Record<string, unknown>;
}

/** Six installations that differ in what they render. */
const installations: Record<string, object> = {
  "the defaults": {},
  "an ingress with TLS, and Prometheus Operator": {
    ingress: { enabled: true, tlsSecretName: "tls", className: "nginx" },
    configuration: { server: { drain_grace_ms: 0 } },
    metrics: { serviceMonitor: { enabled: true }, prometheusRule: { enabled: true } },
  },
  "TLS of its own": {
    configuration: { server: { tls: { cert: "/etc/tls/tls.crt", key: "/etc/tls/tls.key" } } },
    extraVolumes: [{ name: "tls", secret: { secretName: "gateway-tls" } }],
    extraVolumeMounts: [{ name: "tls", mountPath: "/etc/tls", readOnly: true }],
  },
  "a load balancer and a fixed number of gateways": {
    service: { type: "LoadBalancer", port: 443, annotations: { zone: "a" } },
    autoscaling: { enabled: false },
    podDisruptionBudget: { enabled: false },
    replicas: 2,
    drain: { delaySeconds: 20, graceSeconds: 60 },
  },
  "a closed network with a private authority": {
    networkPolicy: {
      ingressFrom: [{ ipBlock: { cidr: "10.0.0.0/8" } }],
      metricsFrom: [{ namespaceSelector: { matchLabels: { name: "monitoring" } } }],
    },
    configuration: { tls: { ca_files: ["/etc/authorities/ca.pem"] } },
    extraVolumes: [{ name: "authorities", configMap: { name: "authorities" } }],
    extraVolumeMounts: [{ name: "authorities", mountPath: "/etc/authorities" }],
    extraEnvironment: [
      { name: "NODE_NAME", valueFrom: { fieldRef: { fieldPath: "spec.nodeName" } } },
    ],
    extraEnvironmentFrom: [{ secretRef: { name: "provider-keys" } }],
  },
  "no migration job, and its own place": {
    migrate: { enabled: false },
    image: { digest: `sha256:${"a".repeat(64)}` },
    serviceAccount: { create: false, name: "gateways" },
    nodeSelector: { disk: "fast" },
    tolerations: [{ key: "gateways", operator: "Exists" }],
    imagePullSecrets: [{ name: "registry" }],
    configuration: { server: { drain_grace_ms: 61_500 } },
  },
};

function run(command: readonly string[]): { exitCode: number; output: string } {
  const { exitCode, stdout, stderr } = Bun.spawnSync([...command], {
    cwd: root,
    env: { ...process.env, PYTHONPATH: programs },
  });
  return { exitCode, output: `${stdout}${exitCode === 0 ? "" : stderr}` };
}

/** Renders the chart with values, as `helm install` would. */
function render(values: object): { exitCode: number; output: string } {
  const path = join(temporaryDirectory(), "values.json");
  writeFileSync(path, JSON.stringify(values));
  const version = ["--kube-version", "1.31.0"];
  return run([helm ?? "helm", "template", "gateway", chart, ...version, "--values", path]);
}

describe(`the Helm chart${missing}`, () => {
  const rendered = new Map<string, Manifest[]>();
  beforeAll(() => {
    if (helm === undefined) return;
    for (const [name, values] of Object.entries(installations)) {
      const { exitCode, output } = render(values);
      if (exitCode !== 0) throw new Error(output);
      const objects = parseAllDocuments(output).map((each) => each.toJS() as Manifest | null);
      rendered.set(
        name,
        objects.filter((each) => each !== null),
      );
    }
  });
  const objectOf = (installation: string, kind: string): Manifest | undefined =>
    rendered.get(installation)?.find((each) => each.kind === kind);
  const textOf = (installation: string, kind: string): string =>
    JSON.stringify(objectOf(installation, kind));

  testHelm("passes its own linter", () => {
    expect(run([helm ?? "helm", "lint", "--strict", chart])).toMatchObject({ exitCode: 0 });
  });

  testHelm("renders every object of an installation that uses all", () => {
    const kinds = rendered.get("an ingress with TLS, and Prometheus Operator");
    expect(kinds?.map(({ kind }) => kind).sort()).toEqual([
      "ConfigMap",
      "ConfigMap",
      "Deployment",
      "HorizontalPodAutoscaler",
      "Ingress",
      "Job",
      "NetworkPolicy",
      "PodDisruptionBudget",
      "PrometheusRule",
      "Service",
      "ServiceAccount",
      "ServiceMonitor",
    ]);
  });

  test.skipIf(helm !== bundled).each([["1.27.0"], ["1.37.0"]])(
    `renders what Kubernetes %s takes${helm === bundled ? "" : " (missing: kubernetes-validate)"}`,
    (version) => {
      const path = join(temporaryDirectory(), "objects.json");
      const known = [...rendered.values()]
        .flat()
        .filter(({ kind }) => kind !== "ServiceMonitor" && kind !== "PrometheusRule");
      expect(known.length).toBeGreaterThan(40);
      writeFileSync(path, known.map((each) => JSON.stringify(each)).join("\n---\n"));
      const validate = join(programs, "bin", "kubernetes-validate");
      const { exitCode, output } = run([validate, "--strict", "-k", version, path]);
      expect(exitCode, output).toBe(0);
    },
  );

  testHelm("asks probes over TLS where the gateway serves it", () => {
    expect(textOf("TLS of its own", "Deployment").match(/"scheme":"HTTPS"/g)).toHaveLength(3);
    expect(textOf("the defaults", "Deployment").match(/"scheme":"HTTP"/g)).toHaveLength(3);
  });

  testHelm("mounts extra files in gateways and in the migration job", () => {
    for (const kind of ["Deployment", "Job"]) {
      expect(textOf("TLS of its own", kind)).toContain('"secretName":"gateway-tls"');
      expect(textOf("TLS of its own", kind)).toContain('"mountPath":"/etc/tls"');
      expect(textOf("a closed network with a private authority", kind)).toContain('"envFrom"');
      expect(textOf("a closed network with a private authority", kind)).toContain("NODE_NAME");
    }
  });

  testHelm.each([
    ["the defaults", 45],
    ["a load balancer and a fixed number of gateways", 90],
    ["no migration job, and its own place", 77],
    ["an ingress with TLS, and Prometheus Operator", 15],
  ])("gives pods the time that their drain takes: %s", (installation, seconds) => {
    expect(textOf(installation, "Deployment")).toContain(
      `"terminationGracePeriodSeconds":${seconds},`,
    );
  });

  testHelm("lets load balancers in unless peers are named", () => {
    const rules = (installation: string) =>
      objectOf(installation, "NetworkPolicy")?.spec["ingress"];
    expect(rules("a load balancer and a fixed number of gateways")).toEqual([
      { ports: [{ port: "http" }] },
      { ports: [{ port: "metrics" }], from: [{ namespaceSelector: {} }] },
    ]);
    expect(rules("a closed network with a private authority")).toEqual([
      { ports: [{ port: "http" }], from: [{ ipBlock: { cidr: "10.0.0.0/8" } }] },
      {
        ports: [{ port: "metrics" }],
        from: [{ namespaceSelector: { matchLabels: { name: "monitoring" } } }],
      },
    ]);
  });

  testHelm("gives every gateway the job by which the alerts find it", () => {
    const everything = "an ingress with TLS, and Prometheus Operator";
    expect(objectOf(everything, "ServiceMonitor")?.spec["jobLabel"]).toBe("app.kubernetes.io/name");
    expect(textOf(everything, "Service")).toContain('"app.kubernetes.io/name":"switchyard"');
    expect(textOf(everything, "PrometheusRule")).toContain('up{job=\\"switchyard\\"} == 0');
  });

  testHelm.each([
    [{ secrets: { REDIS_URL: null } }, "secrets.REDIS_URL is required"],
    [{ extraVolume: [] }, "extraVolume"],
    [{ publicUrl: "gateway.example.com" }, "publicUrl"],
    [{ service: { type: "Loadbalancer" } }, "service.type"],
  ])("refuses %j", (values, named) => {
    const { exitCode, output } = render(values);
    expect(exitCode).not.toBe(0);
    expect(output).toContain(named);
  });
});
