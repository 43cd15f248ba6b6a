import { Page } from "@/kit/Page";

export default function JobQuarantine() {
  return <Page title="JobQuarantine">{null}</Page>;
}
