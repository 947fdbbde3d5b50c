-- The bids on every 123rd auction.
-- NEXMark, Query 2, as nexmark/nexmark puts it for Flink.
-- Nothing is kept, and closed auctions (bid.auction) go on.
-- Verdict, followed: answers at once, keeps nothing.

CREATE TABLE bid (
  auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, dateTime TIMESTAMP, extra STRING
) USING punctuated_xml
OPTIONS (path '${AUCTIONS}/bid.xml', rowTag 'bid',
  schemes 'auction; bidder; dateTime prefix', maxBytesPerSlice '320m');

SELECT auction, price FROM bid WHERE MOD(auction, 123) = 0;
