import { Page } from "@/kit/Page";

export default function Job() {
  return <Page title="Job">{null}</Page>;
}
