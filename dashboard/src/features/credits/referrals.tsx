import { useQuery } from "@tanstack/react-query";
import { ApiError } from "../../lib/api.ts";
import { count, usd } from "../../lib/format.ts";
import { Card, Code, Facts, Loaded } from "../../ui/parts.tsx";
import style from "../../ui/ui.module.css";
import { type ReferralProgram, referralsQuery } from "./api.ts";

const promiseOf = ({ after, referrer_usd: referrer, referred_usd: referred }: ReferralProgram) =>
  `Who signs up by this link gets ${usd(referred)} of monthly credits and this workspace ${usd(referrer)}, ` +
  `${after === "sign_up" ? "at once" : "with their first top-up"}.`;

function Program({ program }: { program: ReferralProgram }) {
  const { url, signed_up: came, pending, rewarded, maximum, earned, referred } = program;
  return (
    <div className={style.stack}>
      <p>{promiseOf(program)}</p>
      <Code text={url} label="Copy link" />
      <Facts
        rows={[
          ["Signed up", count(came)],
          ["Not rewarded yet", count(pending)],
          ["Rewarded", `${count(rewarded)} of ${count(maximum)} at most`],
          ["Earned", usd(earned)],
          ...(referred === null
            ? []
            : [
                [
                  "For coming by a link",
                  referred.status === "rewarded" ? usd(referred.earned) : "with the first top-up",
                ] as const,
              ]),
        ]}
      />
    </div>
  );
}

/** The link that brings credits to both, where the operator gives any. */
export function Referrals() {
  const referrals = useQuery(referralsQuery);
  if (referrals.error instanceof ApiError && referrals.error.status === 501) return null;
  return (
    <Card title="Referrals">
      <Loaded query={referrals} height={160}>
        {(program) => <Program program={program} />}
      </Loaded>
    </Card>
  );
}
