-- Every bid by a person who also sells, with that person and each of their auctions.
-- NEXMark, Query 23, as nexmark/nexmark puts it for Flink.
-- Three inputs, one key. A person is kept until they bid no more (bid.bidder), a bid until its bidder is there
-- (person.id is unique) and sells nothing any more (auction.seller), an auction until its seller bids no more.
-- Verdict, followed: answers at once, keeps what is open.

CREATE TABLE person (
  id BIGINT, name STRING, emailAddress STRING, creditCard STRING, city STRING, state STRING, dateTime TIMESTAMP,
  extra STRING
) USING punctuated_xml
OPTIONS (path '${AUCTIONS}/person.xml', rowTag 'person',
  schemes 'id; dateTime prefix', maxBytesPerSlice '10m');

CREATE TABLE auction (
  id BIGINT, itemName STRING, description STRING, initialBid BIGINT, reserve BIGINT, dateTime TIMESTAMP,
  expires TIMESTAMP, seller BIGINT, category BIGINT, extra STRING
) USING punctuated_xml
OPTIONS (path '${AUCTIONS}/auction.xml', rowTag 'auction',
  schemes 'id; seller; dateTime prefix', maxBytesPerSlice '55m');

CREATE TABLE bid (
  auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, dateTime TIMESTAMP, extra STRING
) USING punctuated_xml
OPTIONS (path '${AUCTIONS}/bid.xml', rowTag 'bid',
  schemes 'auction; bidder; dateTime prefix', maxBytesPerSlice '320m');

SELECT bidder, price, channel, url, B.extra AS bid_extra,
       P.id AS person_id, name, emailAddress, creditCard, city, state, P.extra AS person_extra,
       itemName, description, initialBid, reserve, A.dateTime AS auction_dateTime, expires, seller, category,
       A.extra AS auction_extra
FROM bid B JOIN person P ON P.id = B.bidder JOIN auction A ON A.seller = B.bidder;
