/**
 * The tables of apps that people connect. Lists and terms are JSON, times milliseconds, booleans 0
 * and 1, and codes keyed hashes.
 */
export interface ConsentTables {
  oauth_clients: {
    id: string;
    name: string;
    redirect_uris: string;
    client_uri: string | null;
    logo_uri: string | null;
    application_type: string;
    scope: string | null;
    secret_hash: string | null;
    registered_address: string;
    created_at_ms: number;
    last_used_at_ms: number | null;
  };
  authorization_codes: {
    code_hash: string;
    purpose: string;
    client_id: string | null;
    client_name: string;
    callback_url: string;
    code_challenge: string;
    code_challenge_method: string;
    user_id: string;
    workspace_id: string;
    parent_key_id: string | null;
    terms: string;
    resource: string | null;
    created_at_ms: number;
    expires_at_ms: number;
    used_at_ms: number | null;
    made_key_id: string | null;
  };
  device_codes: {
    device_code_hash: string;
    user_code_hash: string;
    client_id: string | null;
    client_name: string;
    scopes: string;
    offline: number;
    key_label: string | null;
    address: string;
    user_agent: string;
    created_at_ms: number;
    expires_at_ms: number;
    interval_s: number;
    last_polled_at_ms: number | null;
    status: string;
    decided_by_user_id: string | null;
    workspace_id: string | null;
    terms: string | null;
  };
  connections: {
    id: string;
    key_id: string;
    workspace_id: string;
    user_id: string;
    client_id: string | null;
    client_name: string;
    origin: string;
    scopes: string;
    bundle: string | null;
    resource: string | null;
    offline: number;
    address: string;
    user_agent: string;
    created_at_ms: number;
    refreshed_at_ms: number | null;
    refreshed_address: string | null;
    ended_at_ms: number | null;
    end_reason: string | null;
  };
  refresh_tokens: {
    token_hash: string;
    connection_id: string;
    created_at_ms: number;
    expires_at_ms: number;
    used_at_ms: number | null;
  };
}
