/**
 * Returns the path of an endpoint that a client means whose base URL has its version twice or not at
 * all, such as `/v1/v1/messages` or `/chat/completions`; undefined where there is none. `known`
 * matches the paths of endpoints.
 */
export function meantPath(path: string, known: RegExp): string | undefined {
  const once = path.replace(/^\/(?:api\/)?(v1|v1beta)\/(?=(?:api\/)?\1\/)/, "/");
  return [once, `/v1${path}`, `/v1beta${path}`].find((each) => each !== path && known.test(each));
}
